#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes small recordings byte by byte, in either byte order.

make.py FOLDER: little.data, big.data (the same content, but for the order), pipe-little.data,
pipe-big.data, cut.data (its end is missing), unfinished.data (no sizes in its header) and
unknown.data (records that no version knows). The names inside are hostile on purpose.
"""

import struct
import sys
from pathlib import Path

HOSTILE = b"\xff\x1b[2J"
SCRIPT = b"</script>"

# perf_event_attr.sample_type
IP, TID, TIME, CALLCHAIN, CPU, PERIOD, RAW, IDENTIFIER = (
    1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 7, 1 << 8, 1 << 10, 1 << 16
)
SAMPLE_TYPE = IDENTIFIER | IP | TID | TIME | CPU | PERIOD | CALLCHAIN

# Bits of the attr's flags: disabled, inherit, mmap, comm, freq, task, sample_id_all, mmap2, comm_exec
FLAGS = (0, 1, 8, 9, 10, 13, 18, 23, 24)

CONTEXT_KERNEL, CONTEXT_USER = -128 & (1 << 64) - 1, -512 & (1 << 64) - 1
KERNEL, USER = 1, 2
START_NS = 1_000_000_000


class Maker:
    """Everything that depends on the order of bytes."""

    def __init__(self, order):
        self.order = order

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def u64(self, *values):
        return self.pack(f"{len(values)}Q", *values)

    def u32(self, *values):
        return self.pack(f"{len(values)}I", *values)

    def flags(self):
        """A bit-field: its first bit is the lowest of the first byte, or the highest."""
        field = bytearray(8)
        for bit in FLAGS:
            within = bit % 8
            field[bit // 8] |= 1 << (within if self.order == "<" else 7 - within)
        return bytes(field)

    def attr(self, kind, config, name_hz):
        body = self.u32(kind, 112) + self.u64(config, name_hz, SAMPLE_TYPE, 4) + self.flags()
        return body + bytes(112 - len(body))

    def record(self, kind, misc, body):
        body += bytes(-len(body) % 8)
        return self.pack("IHH", kind, misc, 8 + len(body)) + body

    def trailer(self, pid, tid, time, cpu, event_id):
        return self.u32(pid, tid) + self.u64(time) + self.u32(cpu, 0) + self.u64(event_id)

    def text(self, value):
        value += b"\0"
        return value + bytes(-len(value) % 8)

    def string_feature(self, value):
        value = value.encode() + b"\0"
        value += bytes(-len(value) % 64)
        return self.u32(len(value)) + value


EVENTS = ((1, 0, "cpu-clock", (11, 12)), (1, 2, "page-faults", (21,)))


def records(m):
    """Two processes with hostile names, a handful of samples out of order, a loss."""
    t = START_NS
    rows = [
        m.record(1, KERNEL, m.u32(0xFFFFFFFF, 0) + m.u64(0xFFFFFFFF81000000, 0x1000000,
                                                         0xFFFFFFFF81000000)
                 + m.text(b"[kernel.kallsyms]_text") + m.trailer(0, 0, 0, 0, 11)),
        m.record(3, 1 << 13, m.u32(100, 100) + m.text(HOSTILE) + m.trailer(100, 100, t, 0, 11)),
        m.record(10, USER, m.u32(100, 100) + m.u64(0x400000, 0x1000, 0) + m.u32(8, 1)
                 + m.u64(4242, 0) + m.u32(5, 2) + m.text(b"/bin/" + SCRIPT)
                 + m.trailer(100, 100, t, 0, 11)),
        m.record(10, USER | 1 << 14, m.u32(100, 100) + m.u64(0x7F0000000000, 0x2000, 0x1000)
                 + bytes([20, 0, 0, 0]) + bytes(range(20)) + m.u32(5, 2) + m.text(b"/lib/a b.so")
                 + m.trailer(100, 100, t, 0, 11)),
        m.record(7, 0, m.u32(101, 100, 101, 100) + m.u64(t + 10) + m.trailer(100, 100, t + 10, 0, 11)),
        m.record(3, 0, m.u32(101, 101) + m.text(SCRIPT) + m.trailer(101, 101, t + 20, 1, 12)),
    ]
    samples = (
        (11, 100, 100, 30, 0, 0x400123, (CONTEXT_USER, 0x400123, 0x400200)),
        (12, 101, 101, 25, 1, 0xFFFFFFFF81000123,
         (CONTEXT_KERNEL, 0xFFFFFFFF81000123, CONTEXT_USER, 0x7F0000000456)),
        (21, 100, 102, 40, 0, 0x7F0000000999, ()),
        (11, 100, 100, 999999999, 0, 0x400124, (CONTEXT_USER, 0x400124)),
    )
    for event_id, pid, tid, after, cpu, ip, chain in samples:
        rows.append(m.record(
            9, KERNEL if ip >> 63 else USER,
            m.u64(event_id, ip) + m.u32(pid, tid) + m.u64(t + after) + m.u32(cpu, 0)
            + m.u64(250000) + m.u64(len(chain)) + m.u64(*chain)))
    rows += [
        m.record(2, 0, m.u64(11, 3) + m.trailer(0, 0, t + 50, 0, 11)),
        m.record(13, 0, m.u64(5) + m.trailer(0, 0, t + 60, 0, 21)),
        m.record(5, 0, m.u64(t + 61, 11, 11) + m.trailer(100, 100, t + 61, 0, 11)),
        m.record(4, 0, m.u32(101, 100, 101, 100) + m.u64(t + 70) + m.trailer(101, 101, t + 70, 1, 12)),
        m.record(68, 0, b""),
    ]
    return rows


def event_desc(m):
    body = m.u32(len(EVENTS), 112)
    for kind, config, name, ids in EVENTS:
        body += m.attr(kind, config, 4000) + m.u32(len(ids)) + m.string_feature(name) + m.u64(*ids)
    return body


def features(m):
    """Ascending by bit: HOSTNAME, OSRELEASE, ARCH, NRCPUS, TOTAL_MEM, CMDLINE, EVENT_DESC."""
    words = ["perf", "record", "a b", "</script>"]
    return {
        3: m.string_feature("evil\x1b[2J</script>"),
        4: m.string_feature("6.1.0"),
        6: m.string_feature("x86_64" if m.order == "<" else "s390x"),
        7: m.u32(4, 2),
        10: m.u64(1048576),
        11: m.u32(len(words)) + b"".join(m.string_feature(w) for w in words),
        12: event_desc(m),
    }


def bitmap(m, bits):
    return m.u64(*(sum(1 << b % 64 for b in bits if b // 64 == word) for word in range(4)))


def file(m, rows, finished=True):
    """Header, ids, attrs, data, feature table, feature bodies."""
    ids, attrs, at = b"", b"", 104
    for kind, config, _, numbers in EVENTS:
        attrs += m.attr(kind, config, 4000) + m.u64(at + len(ids), 8 * len(numbers))
        ids += m.u64(*numbers)
    data = b"".join(rows)
    bodies = features(m)
    attrs_at = at + len(ids)
    data_at = attrs_at + len(attrs)
    header = m.u64(0x32454C4946524550, 104, 128, attrs_at, len(attrs), data_at,
                   len(data) if finished else 0, 0, 0) + bitmap(m, bodies)
    if not finished:
        return header + ids + attrs + data
    table, body_at = b"", data_at + len(data) + 16 * len(bodies)
    for body in bodies.values():
        table += m.u64(body_at, len(body))
        body_at += len(body)
    return header + ids + attrs + data + table + b"".join(bodies.values())


def pipe(m, rows):
    out = m.u64(0x32454C4946524550, 16)
    for kind, config, _, ids in EVENTS:
        out += m.record(64, 0, m.attr(kind, config, 4000) + m.u64(*ids))
    for bit, body in features(m).items():
        out += m.record(80, 0, m.u64(bit) + body)
    out += m.record(80, 0, m.u64(32))
    return out + b"".join(rows)


def main():
    folder = Path(sys.argv[1])
    little, big = Maker("<"), Maker(">")
    rows = records(little)
    whole = file(little, rows)
    strange = [little.record(60, 3, little.u64(1, 2)), little.record(100, 0, b"")]
    contents = {
        "little.data": whole,
        "big.data": file(big, records(big)),
        "pipe-little.data": pipe(little, rows),
        "pipe-big.data": pipe(big, records(big)),
        "cut.data": whole[: len(file(little, rows, False)) - 100],
        "unfinished.data": file(little, rows, False),
        "unknown.data": file(little, rows[:3] + strange + rows[3:]),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
