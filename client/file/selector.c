/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/selector.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/file/recording.h"
#include "perfdata/feature/environment.h"
#include "perfdata/record/sample.h"
#include "util/text.h"

/*
 * Ids are compared with the stamp of a record, and with its body if that describes a process. Comms
 * and groups come from a process table, which is fed the side-band. Until a record matches, all
 * others go into the Mismatch, which then can explain the reason.
 */

enum { IDS_SHOWN_MAX = 256 };

/* The layout of bodies that describe a process. The trailers of records that perf synthesizes are
 * zero, so the body identifies the process. */
typedef struct Subject {
    uint32_t type;
    int pid, tid, parent_pid, parent_tid; /* offsets after the header, -1: none */
} Subject;

/* clang-format off */
static const Subject subjects[] = {
    {PD_RECORD_MMAP,            0, 4, -1, -1},
    {PD_RECORD_MMAP2,           0, 4, -1, -1},
    {PD_RECORD_COMM,            0, 4, -1, -1},
    {PD_RECORD_FORK,            0, 8,  4, 12},
    {PD_RECORD_EXIT,            0, 8, -1, -1},
    {PD_RECORD_NAMESPACES,      0, 4, -1, -1},
    {PD_RECORD_ITRACE_START,    0, 4, -1, -1},
};
/* clang-format on */

static const Subject *selector_subject_of(const PdRecord *record) {
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
        if (subjects[i].type == record->type)
            return record->size >= PD_RECORD_HEADER_SIZE + 16 ? &subjects[i] : NULL;
    return NULL;
}

static uint32_t selector_id_at(const PdRecord *record, int offset) {
    return load_u32(record->data + PD_RECORD_HEADER_SIZE + offset, record->swap);
}

static bool selector_body_holds(const OptionNumbers *numbers, const PdRecord *record, int offset) {
    return offset >= 0 && option_numbers_hold(numbers, selector_id_at(record, offset));
}

void selector_options_done(SelectorOptions *options) {
    option_numbers_done(&options->pids);
    option_numbers_done(&options->tids);
    option_numbers_done(&options->cpus);
    option_words_done(&options->comms);
    option_words_done(&options->cgroups);
    option_words_done(&options->units);
}

bool selector_options_are_set(const SelectorOptions *o) {
    return o->pids.n + o->tids.n + o->cpus.n + o->comms.n + o->cgroups.n + o->units.n > 0;
}

void selector_done(Selector *s) {
    free((void *)s->selection.pids);
    free((void *)s->selection.tids);
    free((void *)s->selection.comms);
    free((void *)s->selection.cgroups);
    free((void *)s->selection.units);
    for (size_t i = 0; i < s->n_texts; i++)
        free(s->texts[i]);
    free(s->texts);
    s->table = process_table_free(s->table);
    mismatch_done(&s->mismatch);
    *s = (Selector){};
}

static int selector_take_ids(const OptionNumbers *numbers, const uint32_t **ret, size_t *ret_n) {
    uint32_t *ids = calloc(IDS_SHOWN_MAX, sizeof(*ids));
    size_t n = 0;

    if (!ids)
        return -ENOMEM;
    *ret = ids;
    for (size_t i = 0; i < numbers->n; i++)
        for (uint64_t id = numbers->items[i].first;
             id <= numbers->items[i].last && n < IDS_SHOWN_MAX; id++)
            ids[n++] = (uint32_t)id;
    *ret_n = n;
    return 0;
}

/* A name may be literal or escaped as we print it. Both forms match. */
static int selector_take_words(Selector *s, const OptionWords *words, const char *const **ret,
                               size_t *ret_n) {
    const char **items = calloc(2 * words->n + 1, sizeof(*items));
    size_t n = 0;

    if (!items)
        return -ENOMEM;
    *ret = items;
    for (size_t i = 0; i < words->n; i++) {
        char *text = strdup(words->items[i]);

        if (!text)
            return -ENOMEM;
        s->texts[s->n_texts++] = text;
        text_unescape(text, text);
        items[n++] = words->items[i];
        if (strcmp(text, words->items[i]) != 0)
            items[n++] = text;
    }
    *ret_n = n;
    return 0;
}

static void selector_take_cpus(Selection *selection, const OptionNumbers *cpus) {
    selection->by_cpu = cpus->n > 0;
    for (uint32_t cpu = 0; cpu < PD_COVERAGE_CPUS_MAX; cpu++)
        if (option_numbers_hold(cpus, cpu))
            selection->cpus[cpu / 8] |= (uint8_t)(1 << cpu % 8);
}

int selector_init(Selector *s, const SelectorOptions *o) {
    Selection *to = &s->selection;
    int r;

    if (!selector_options_are_set(o))
        return 0;
    s->options = o;
    s->texts = calloc(o->comms.n + o->cgroups.n + o->units.n + 1, sizeof(*s->texts));
    if (!s->texts)
        return -ENOMEM;
    r = selector_take_ids(&o->pids, &to->pids, &to->n_pids);
    if (r == 0)
        r = selector_take_ids(&o->tids, &to->tids, &to->n_tids);
    if (r == 0)
        r = selector_take_words(s, &o->comms, &to->comms, &to->n_comms);
    if (r == 0)
        r = selector_take_words(s, &o->cgroups, &to->cgroups, &to->n_cgroups);
    if (r == 0)
        r = selector_take_words(s, &o->units, &to->units, &to->n_units);
    selector_take_cpus(to, &o->cpus);
    if (r == 0 && selection_kinds(to) & (SELECTION_COMM | SELECTION_GROUP))
        r = process_table_new(NULL, &s->table);
    return r;
}

int selector_feed(Selector *s, const PdRecord *record, const PdStamp *stamp) {
    PdBody body;

    if (stamp->has_cpu && stamp->cpu < PD_COVERAGE_CPUS_MAX)
        s->seen_cpus[stamp->cpu / 8] |= (uint8_t)(1 << stamp->cpu % 8);
    if (!s->table || !process_table_takes(record))
        return 0;
    /* An invalid body changes nothing here; it is reported elsewhere. */
    (void)process_table_feed(s->table, record, stamp->event);
    if (s->any || record->type != PD_RECORD_CGROUP ||
        pd_record_parse(record, stamp->event, &body) < 0 ||
        selection_has_group(&s->selection, body.cgroup.path))
        return 0;
    return mismatch_add_group(&s->mismatch, &body.cgroup);
}

static bool selector_has_pid(const Selector *s, const PdRecord *record, const PdStamp *stamp,
                             const Subject *subject) {
    const OptionNumbers *pids = &s->options->pids;

    return pids->n == 0 || (stamp->has_tid && option_numbers_hold(pids, stamp->pid)) ||
           (subject && (selector_body_holds(pids, record, subject->pid) ||
                        selector_body_holds(pids, record, subject->parent_pid)));
}

static bool selector_has_tid(const Selector *s, const PdRecord *record, const PdStamp *stamp,
                             const Subject *subject) {
    const OptionNumbers *tids = &s->options->tids;

    return tids->n == 0 || (stamp->has_tid && option_numbers_hold(tids, stamp->tid)) ||
           (subject && (selector_body_holds(tids, record, subject->tid) ||
                        selector_body_holds(tids, record, subject->parent_tid)));
}

static Bytes selector_name_of(ProcessAnswer answer) {
    return answer.name ? name_bytes(answer.name) : (Bytes){};
}

static Bytes selector_comm_of(const Selector *s, const PdRecord *record, const PdStamp *stamp,
                              const Subject *subject) {
    uint32_t pid = subject ? selector_id_at(record, subject->pid) : stamp->pid,
             tid = subject ? selector_id_at(record, subject->tid) : stamp->tid;

    if (!s->table || (!subject && !stamp->has_tid))
        return (Bytes){};
    /* No COMM record names the idle task. */
    if (tid == 0)
        return (Bytes){.data = (const uint8_t *)"swapper", .size = 7};
    return selector_name_of(process_table_comm(s->table, pid, tid));
}

/* The id of the group, 0: the record has none. */
static uint64_t selector_group_of(const PdRecord *record, const PdStamp *stamp) {
    PdSample sample;
    PdBody body;

    if (record->type == PD_RECORD_CGROUP && pd_record_parse(record, stamp->event, &body) == 0)
        return body.cgroup.id;
    if (record->type == PD_RECORD_SAMPLE && stamp->event &&
        stamp->event->attr.sample_type & PD_SAMPLE_CGROUP &&
        pd_sample_parse(record, stamp->event, &sample) == 0)
        return sample.cgroup;
    return 0;
}

static bool selector_has_group(const Selector *s, uint64_t id) {
    ProcessAnswer answer;

    if (!(selection_kinds(&s->selection) & SELECTION_GROUP))
        return true;
    if (id == 0)
        return false;
    answer = process_table_cgroup(s->table, id);
    return answer.known && selection_has_group(&s->selection, selector_name_of(answer));
}

bool selector_wants(Selector *s, const PdRecord *record, const PdStamp *stamp) {
    unsigned asked = selection_kinds(&s->selection), passed;
    const Subject *subject;
    uint64_t group;
    Bytes comm;

    if (!s->options)
        return true;
    subject = selector_subject_of(record);
    group = asked & SELECTION_GROUP ? selector_group_of(record, stamp) : 0;
    comm = asked & SELECTION_COMM ? selector_comm_of(s, record, stamp, subject) : (Bytes){};
    passed =
        (selector_has_pid(s, record, stamp, subject) ? SELECTION_PID : 0) |
        (selector_has_tid(s, record, stamp, subject) ? SELECTION_TID : 0) |
        (selection_has_comm(&s->selection, comm) ? SELECTION_COMM : 0) |
        (selector_has_group(s, group) ? SELECTION_GROUP : 0) |
        (!s->selection.by_cpu || (stamp->has_cpu && selection_has_cpu(&s->selection, stamp->cpu))
             ? SELECTION_CPU
             : 0);
    if ((asked & ~passed) == 0)
        return s->any = true;
    if (!s->any)
        mismatch_add_sample(&s->mismatch, &s->selection, passed, comm, group);
    return false;
}

/* How many CPUs the host of the recording can have; 0: unknown. */
static uint32_t selector_count_cpus(PdReader *reader) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    if (pd_environment_new(&env) < 0 ||
        pd_environment_read_feature(env, reader, PD_FEATURE_NRCPUS) < 0)
        return 0;
    return env->nrcpus_available;
}

/* A CPU without samples was idle; a CPU that the host does not have is an error. */
static bool selector_find_absent_cpu(const Selector *s, PdReader *reader, uint32_t *ret) {
    uint32_t n = s->options->cpus.n > 0 ? selector_count_cpus(reader) : 0;

    for (size_t i = 0; i < s->options->cpus.n; i++)
        for (uint64_t cpu = s->options->cpus.items[i].first; cpu <= s->options->cpus.items[i].last;
             cpu++) {
            bool seen = cpu < PD_COVERAGE_CPUS_MAX && s->seen_cpus[cpu / 8] & 1 << cpu % 8;

            if (!seen && cpu >= n) {
                *ret = (uint32_t)cpu;
                return true;
            }
        }
    return false;
}

void selector_put_mismatch(const Selector *s, Buffer *out) {
    _cleanup_(buffer_done) Buffer choice = {};
    const NearNames *near = mismatch_describe(&s->mismatch, &s->selection, &choice);

    text_puts(out, "match ");
    buffer_append(out, choice.data, choice.size);
    near_put_question(near, out);
}

int selector_verdict(const Selector *s, PdReader *reader, const char *path, const char *kind) {
    _cleanup_(buffer_done) Buffer text = {};
    uint32_t absent;

    if (!s->options)
        return STATUS_OK;
    if (selector_find_absent_cpu(s, reader, &absent))
        return complain(STATUS_NOT_FOUND, "'%s' has no CPU %" PRIu32 ".", recording_name(path),
                        absent);
    if (s->any)
        return STATUS_OK;
    text_printf(&text, "No %s in '", kind);
    text_escape_str(&text, recording_name(path));
    text_puts(&text, "' ");
    selector_put_mismatch(s, &text);
    text_putc(&text, '\0');
    if (buffer_error(&text))
        return complain(STATUS_NOT_FOUND, "No %s in '%s' match.", kind, recording_name(path));
    return complain_shown(STATUS_NOT_FOUND, (const char *)text.data);
}
