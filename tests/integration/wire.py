# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages of protocol buffers, strictly read: fields as they come, and pprof's profile.proto with all that an engine
refuses. Nothing here is of profd, so what profd writes is judged by somebody else."""

import gzip
import struct


class Refused(Exception):
    """What an engine would answer with 400."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Refused("a number is cut")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def fields(data):
    """(number, value) of each field; a value is a number or bytes."""
    at, size = 0, len(data)
    while at < size:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise Refused("field 0")
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            n = 8 if kind == 1 else 4
            if at + n > size:
                raise Refused("a fixed number is cut")
            value, at = struct.unpack_from("<Q" if n == 8 else "<I", data, at)[0], at + n
        elif kind == 2:
            n, at = varint(data, at)
            if at + n > size:
                raise Refused("a field is longer than its message")
            value, at = data[at:at + n], at + n
        else:
            raise Refused(f"wire type {kind}")
        yield number, value


def collect(data, lists=()):
    """The fields of a message: the last of each number, or a list of all for those in `lists`."""
    found = {number: [] for number in lists}
    for number, value in fields(data):
        if number in found and number in lists:
            found[number].append(value)
        else:
            found[number] = value
    return found


def numbers(values):
    """Of a repeated field of numbers, packed or not."""
    result = []
    for value in values:
        if isinstance(value, int):
            result.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            result.append(number)
    return result


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def text(data):
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"a string is not UTF-8: {error}") from None


def unpacked(data, limit):
    """The content of a gzip stream, or the data itself; refused if it is larger than `limit`."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise Refused(f"no gzip: {error}") from None
    if len(data) > limit:
        raise Refused(f"the profile has {len(data)} bytes, the limit is {limit}")
    return data


class Pprof:
    """types [(type, unit)], period_type, period, time_ns, duration_ns, samples [(functions from the leaf, values,
    {label: text or number})]."""

    def __init__(self, data):
        top = collect(data, lists=(1, 2, 3, 4, 5, 6))
        self.strings = [text(value) for value in top[6]]
        if not self.strings or self.strings[0] != "":
            raise Refused("the first string is not empty")
        self.types = [self.value_type(value) for value in top[1]]
        self.period_type = self.value_type(top[11]) if 11 in top else None
        self.period, self.time_ns = top.get(12, 0), top.get(9, 0)
        self.duration_ns = top.get(10, 0)
        mappings = self.table(top[3], "mapping")
        functions = {key: self.string(value.get(2, 0)) for key, value in self.table(top[5], "function").items()}
        self.lines = {}
        for key, value in self.table(top[4], "location", lists=(4,)).items():
            if value.get(2, 0) and value[2] not in mappings:
                raise Refused(f"location {key} is in mapping {value[2]}, which is not there")
            names = []
            for line in value[4]:
                function = collect(line).get(1, 0)
                if function not in functions:
                    raise Refused(f"location {key} has function {function}, which is not there")
                names.append(functions[function])
            if not names:
                raise Refused(f"location {key} has no name")
            self.lines[key] = names
        self.samples = [self.sample(value) for value in top[2]]

    def string(self, index):
        if index >= len(self.strings):
            raise Refused(f"string {index} is not there")
        return self.strings[index]

    def value_type(self, data):
        found = collect(data)
        return self.string(found.get(1, 0)), self.string(found.get(2, 0))

    @staticmethod
    def table(values, what, lists=()):
        found = {}
        for value in values:
            item = collect(value, lists=lists)
            key = item.get(1, 0)
            if key == 0 or key in found:
                raise Refused(f"{what} {key} is 0 or there twice")
            found[key] = item
        return found

    def sample(self, data):
        found = collect(data, lists=(1, 2, 3))
        stack, labels = [], {}
        for key in numbers(found[1]):
            if key not in self.lines:
                raise Refused(f"a sample is at location {key}, which is not there")
            stack += self.lines[key]
        values = [signed(value) for value in numbers(found[2])]
        if len(values) != len(self.types):
            raise Refused(f"a sample has {len(values)} values of {len(self.types)} types")
        for label in found[3]:
            item = collect(label)
            labels[self.string(item.get(1, 0))] = self.string(item[2]) if item.get(2) else signed(item.get(3, 0))
        return tuple(stack), values, labels
