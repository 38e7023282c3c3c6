/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/segment-replay.h"

#include <errno.h>
#include <string.h>

#include "perfdata/order/order.h"
#include "store/window/known-thread.h"
#include "util/array.h"
#include "util/buffer.h"

/*
 * A segment introduces a process with FORK|FORK_EXEC and its state at a moment that may be before
 * the end of the previous segment. There are three cases. The process is new: the statement is
 * passed on, and the History treats it as the state since ever. The previous segment recorded the
 * process beyond that moment: then nothing of the statement is new up to the end of the previous
 * segment, except threads that were not sampled there. Or no segment had the process for a while:
 * then the stated state replaces the old one, as if the process had called exec. Passing a FORK
 * instead would cut its threads off from its later mappings.
 *
 * Within one segment a process is introduced again only when its pid was reused. Samples are
 * written CPU by CPU, so a later life of the pid may come before an earlier one: records are sorted
 * by time before these cases are checked, otherwise the later life would count as the state since
 * ever. A process that is introduced without a name was the child of a parent that was not known
 * yet either: its statement is treated as a plain FORK.
 */

/* Limits of what waits to be sorted: two sweeps of a segment have far less. */
enum { KERNEL_BYTES_MAX = 16 << 20, WAITING_BYTES_MAX = 16 << 20 };

typedef enum Verdict { PASS, DROP, AS_BIRTH, AS_EXEC, AS_THREAD } Verdict;

struct SegmentReplay {
    History *history;
    KnownTable known;
    uint64_t *covers; /* for each part, counted from 0: until when it holds all records */
    size_t n_parts;
    bool in_preamble;
    const PdEvents *events;
    PdSorter *waiting;
    size_t waiting_bytes;
    /* A FORK|FORK_EXEC that may introduce a state. */
    struct {
        bool is_there;
        PdRecord record;
        PdStamp stamp;
        Bytes comm; /* the name of the state, while the case is decided */
        uint8_t bytes[PD_RECORD_HEADER_SIZE + 256];
    } held;
    Buffer kernel; /* maps of the kernel, without trailers */
    bool new_kernel;
    uint8_t scratch[PD_RECORD_SIZE_MAX];
};

int segment_replay_new(uint64_t table_bytes, SegmentReplay **ret) {
    _cleanup_(segment_replay_freep) SegmentReplay *r = calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return -ENOMEM;
    rc = history_new(&(ProcessLimits){.memory_bytes = table_bytes}, &r->history);
    if (rc < 0)
        return rc;
    history_set_identify(r->history, HISTORY_MARKS);
    history_keep_data(r->history, true);
    *ret = TAKE_PTR(r);
    return 0;
}

SegmentReplay *segment_replay_free(SegmentReplay *r) {
    if (!r)
        return NULL;
    history_free(r->history);
    pd_sorter_free(r->waiting);
    known_done(&r->known);
    buffer_done(&r->kernel);
    free(r->covers);
    free(r);
    return NULL;
}

History *segment_replay_history(SegmentReplay *r) {
    return r->history;
}

/* Until when segments held all records of the process. */
static uint64_t segment_replay_known_of(const SegmentReplay *r, const KnownThread *leader) {
    if (!leader)
        return 0;
    return leader->part == r->n_parts ? leader->known_ns : r->covers[leader->part - 1];
}

/* Whether this is another life of the pid: too short or too late to be sampled in the previous
 * segment, which held an earlier life. */
static bool segment_replay_is_another(const SegmentReplay *r, const KnownThread *thread,
                                      uint64_t time, bool is_state) {
    Bytes comm;

    if (time <= thread->begun_ns)
        return false;
    if (!is_state)
        return true;
    comm = history_comm(r->history, thread->pid, thread->pid, time);
    return comm.size > 0 && !bytes_equal(comm, r->held.comm);
}

static Verdict segment_replay_begin_process(SegmentReplay *r, const PdTask *task, uint64_t time,
                                            bool is_state) {
    KnownThread *thread = known_find(&r->known, task->pid, task->pid);
    bool again = thread && thread->part == r->n_parts;
    uint64_t known = segment_replay_known_of(r, thread);

    if (!thread && (thread = known_get(&r->known, task->pid, task->pid))) {
        thread->part = (uint32_t)r->n_parts;
        thread->begun_ns = time;
        return PASS;
    }
    if (!thread)
        return PASS;
    thread->part = (uint32_t)r->n_parts;
    thread->known_ns = known;
    thread->exec_ns = 0;
    if (time <= known && !segment_replay_is_another(r, thread, time, is_state))
        return DROP;
    thread->begun_ns = time;
    if (time <= known) {
        thread->known_ns = 0;
        return is_state ? AS_BIRTH : PASS;
    }
    if (!is_state)
        return PASS;
    if (again)
        return AS_BIRTH;
    thread->exec_ns = time;
    thread->reborn = true;
    thread->reborn_ns = time;
    return DROP;
}

static Verdict segment_replay_begin_thread(SegmentReplay *r, const PdTask *task, uint64_t time) {
    const KnownThread *leader = known_find(&r->known, task->pid, task->pid);
    bool reborn = leader && leader->reborn;
    uint64_t known = segment_replay_known_of(r, leader);
    KnownThread *thread = known_find(&r->known, task->pid, task->tid);
    bool is_news = !thread || (reborn && thread->stated_ns < leader->reborn_ns);

    if (time <= known && !is_news)
        return DROP;
    thread = known_get(&r->known, task->pid, task->tid);
    if (thread) {
        thread->part = (uint32_t)r->n_parts;
        thread->stated_ns = time;
    }
    /* Before that its process had another state. */
    return reborn ? AS_THREAD : PASS;
}

static Verdict segment_replay_judge_comm(SegmentReplay *r, const PdComm *comm, uint64_t time) {
    KnownThread *leader = known_find(&r->known, comm->pid, comm->pid);
    const KnownThread *thread = known_find(&r->known, comm->pid, comm->tid);

    if (comm->tid != comm->pid && thread && thread->stated_ns == time)
        return PASS;
    if (time <= segment_replay_known_of(r, leader))
        return DROP;
    if (comm->tid != comm->pid || !leader || leader->exec_ns != time)
        return PASS;
    leader->exec_ns = 0;
    return AS_EXEC;
}

static Verdict segment_replay_judge(SegmentReplay *r, const PdRecord *record, const PdBody *body,
                                    uint64_t time) {
    uint32_t pid;

    switch (record->type) {
    case PD_RECORD_FORK:
        return body->task.pid == body->task.tid
                   ? segment_replay_begin_process(r, &body->task, time,
                                                  record->misc & PD_MISC_FORK_EXEC)
                   : segment_replay_begin_thread(r, &body->task, time);
    case PD_RECORD_COMM:
        return segment_replay_judge_comm(r, &body->comm, time);
    case PD_RECORD_MMAP2:
        pid = body->mmap.pid;
        break;
    case PD_RECORD_NAMESPACES:
        pid = body->namespaces.pid;
        break;
    default:
        return PASS;
    }
    return time <= segment_replay_known_of(r, known_find(&r->known, pid, pid)) ? DROP : PASS;
}

/* Makes a plain FORK of it, which states nothing. */
static PdRecord segment_replay_make_fork(SegmentReplay *r, const PdRecord *record) {
    PdRecord made = *record;

    memcpy(r->scratch, record->data, record->size);
    made.misc &= (uint16_t)~PD_MISC_FORK_EXEC;
    store_u16(r->scratch + 4, made.misc, false);
    made.data = r->scratch;
    return made;
}

/* Makes the FORK of a process whose parent is not in the recording, so that it inherits nothing. */
static PdRecord segment_replay_make_birth(SegmentReplay *r, const PdRecord *record) {
    PdRecord made = segment_replay_make_fork(r, record);

    store_u32(r->scratch + 12, 0, false);
    store_u32(r->scratch + 20, 0, false);
    return made;
}

static PdRecord segment_replay_make_exec(SegmentReplay *r, const PdRecord *record) {
    PdRecord made = *record;

    memcpy(r->scratch, record->data, record->size);
    made.misc |= PD_MISC_COMM_EXEC;
    store_u16(r->scratch + 4, made.misc, false);
    made.data = r->scratch;
    return made;
}

static int segment_replay_add_kernel(SegmentReplay *r, const PdRecord *record,
                                     const PdEvent *event) {
    uint16_t size = (uint16_t)(record->size - event->trailer_size);
    size_t at = r->kernel.size;

    if (r->kernel.size + size > KERNEL_BYTES_MAX)
        return 0;
    buffer_append(&r->kernel, record->data, size);
    if (buffer_error(&r->kernel) < 0)
        return buffer_error(&r->kernel);
    store_u16(r->kernel.data + at + 6, size, false);
    r->new_kernel = true;
    return 0;
}

static bool segment_replay_is_of_kernel(const PdRecord *record) {
    return (record->type == PD_RECORD_MMAP || record->type == PD_RECORD_MMAP2) &&
           (record->misc & PD_MISC_CPUMODE_MASK) == PD_MISC_KERNEL;
}

/* Generated code that was there before is only in the first segment of a recorder. It is new if
 * that segment began after the end of the previous one. */
static int segment_replay_feed_preamble(SegmentReplay *r, const PdRecord *record,
                                        const PdStamp *stamp) {
    bool first = r->n_parts == 1;

    if (record->type == PD_RECORD_FINISHED_INIT) {
        r->in_preamble = false;
        return 0;
    }
    if (!stamp->event ||
        record->size < PD_RECORD_HEADER_SIZE + (uint32_t)stamp->event->trailer_size)
        return 0;
    if (segment_replay_is_of_kernel(record))
        return segment_replay_add_kernel(r, record, stamp->event);
    if (record->type != PD_RECORD_KSYMBOL && record->type != PD_RECORD_BPF_EVENT)
        return history_feed(r->history, record, stamp->event);
    if (first)
        return segment_replay_add_kernel(r, record, stamp->event);
    return stamp->time > r->covers[r->n_parts - 2] ? history_feed(r->history, record, stamp->event)
                                                   : 0;
}

static int segment_replay_apply(SegmentReplay *r, const PdRecord *record, const PdStamp *stamp) {
    PdRecord made = *record;
    PdBody body;
    int rc;

    rc = pd_record_parse(record, stamp->event, &body);
    if (rc < 0)
        return rc == -EOPNOTSUPP ? 0 : rc;
    switch (segment_replay_judge(r, record, &body, stamp->time)) {
    case DROP:
        /* The previous segment may have ended before this build id was known. */
        if (record->type == PD_RECORD_MMAP2)
            (void)history_learn_build_id(r->history, &body.mmap, stamp->time);
        return 0;
    case AS_BIRTH:
        made = segment_replay_make_birth(r, record);
        break;
    case AS_EXEC:
        made = segment_replay_make_exec(r, record);
        break;
    case AS_THREAD:
        made = segment_replay_make_fork(r, record);
        break;
    case PASS:
        break;
    }
    return history_feed(r->history, &made, stamp->event);
}

/* Passes on the record that was held back, now that the record after it is known. */
static int segment_replay_release(SegmentReplay *r, const PdRecord *next, const PdStamp *stamp) {
    PdRecord *record = &r->held.record;
    PdBody fork, body;
    bool is_named;

    if (!r->held.is_there)
        return 0;
    r->held.is_there = false;
    if (pd_record_parse(record, r->held.stamp.event, &fork) < 0)
        return 0;
    is_named = next && next->type == PD_RECORD_COMM && stamp->time == r->held.stamp.time &&
               pd_record_parse(next, stamp->event, &body) == 0 && body.comm.pid == fork.task.pid &&
               body.comm.tid == fork.task.pid;
    r->held.comm = is_named ? body.comm.comm : (Bytes){};
    if (!is_named) {
        record->misc &= (uint16_t)~PD_MISC_FORK_EXEC;
        store_u16(r->held.bytes + 4, record->misc, false);
    }
    return segment_replay_apply(r, record, &r->held.stamp);
}

static bool segment_replay_hold_back(SegmentReplay *r, const PdRecord *record,
                                     const PdStamp *stamp) {
    PdBody body;

    if (record->type != PD_RECORD_FORK || !(record->misc & PD_MISC_FORK_EXEC) ||
        record->size > sizeof(r->held.bytes) || pd_record_parse(record, stamp->event, &body) < 0 ||
        body.task.pid != body.task.tid)
        return false;
    memcpy(r->held.bytes, record->data, record->size);
    r->held.record = *record;
    r->held.record.data = r->held.bytes;
    r->held.stamp = *stamp;
    r->held.is_there = true;
    return true;
}

static int segment_replay_take(SegmentReplay *r, const PdRecord *record) {
    PdStamp stamp;
    int rc = pd_events_stamp(r->events, record, &stamp);

    if (rc == 0)
        rc = segment_replay_release(r, record, &stamp);
    if (rc < 0)
        return rc;
    return segment_replay_hold_back(r, record, &stamp) ? 0
                                                       : segment_replay_apply(r, record, &stamp);
}

/* Skips a broken record; the next one may be valid. */
static int segment_replay_take_waiting(SegmentReplay *r, uint64_t until_ns) {
    PdRecord record;
    uint64_t time;
    int rc;

    pd_sorter_release(r->waiting, until_ns);
    while ((rc = pd_sorter_next(r->waiting, &record, &time)) > 0) {
        r->waiting_bytes -= record.size;
        rc = segment_replay_take(r, &record);
        if (rc < 0 && rc != -EBADMSG)
            return rc;
    }
    if (rc == 0)
        rc = segment_replay_release(r, NULL, NULL);
    return rc == -EBADMSG ? 0 : rc;
}

/* Creates a new PdOrder, because records that were released cannot come back. It never uses a
 * file. */
static int segment_replay_renew_waiting(SegmentReplay *r) {
    const PdOrderOptions options = {.memory_bytes = 8ULL * WAITING_BYTES_MAX};

    r->waiting = pd_sorter_free(r->waiting);
    r->waiting_bytes = 0;
    return pd_sorter_new(&options, &r->waiting);
}

int segment_replay_begin(SegmentReplay *r, const PdEvents *events, uint64_t covered_ns) {
    int rc = r->waiting ? segment_replay_take_waiting(r, UINT64_MAX) : 0;
    uint64_t *cover = array_grow(&r->covers, &r->n_parts);

    if (rc == 0)
        rc = segment_replay_renew_waiting(r);
    if (!cover || rc < 0)
        return rc < 0 ? rc : -ENOMEM;
    *cover = covered_ns;
    r->events = events;
    /* The segment states all of them again. */
    buffer_clear(&r->kernel);
    r->in_preamble = true;
    return 0;
}

int segment_replay_feed(SegmentReplay *r, const PdRecord *record, const PdStamp *stamp) {
    int rc;

    if (r->in_preamble)
        return segment_replay_feed_preamble(r, record, stamp);
    if (!stamp->event || !stamp->has_time || record->size > PD_RECORD_SIZE_MAX ||
        record->size < PD_RECORD_HEADER_SIZE + (uint32_t)stamp->event->trailer_size)
        return 0;
    if (segment_replay_is_of_kernel(record))
        return segment_replay_add_kernel(r, record, stamp->event);
    rc = pd_sorter_add(r->waiting, record, stamp->time);
    if (rc < 0)
        return rc;
    r->waiting_bytes += record->size;
    /* The index is wrong: records out of order are better than unbounded memory. */
    return r->waiting_bytes > WAITING_BYTES_MAX ? segment_replay_take_waiting(r, UINT64_MAX) : 0;
}

int segment_replay_settle(SegmentReplay *r, uint64_t until_ns) {
    int rc = segment_replay_take_waiting(r, until_ns);

    if (rc == 0 && r->new_kernel)
        rc = history_install_kernel(r->history, buffer_bytes(&r->kernel));
    r->new_kernel = false;
    if (rc == 0)
        rc = history_settle(r->history, UINT64_MAX);
    return rc;
}

/* Called twice, because the floor is the start of the sweep before the last complete one. */
void segment_replay_set_floor(SegmentReplay *r, uint64_t ns) {
    history_complete(r->history, ns);
    history_complete(r->history, ns);
}
