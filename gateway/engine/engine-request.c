/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/engine-request.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"

/*
 * Limits are obeyed before anything is sent, since an engine refuses a request or a profile as a
 * whole. A series with many stacks becomes several profiles. What is still too much is folded: the
 * rarest stacks become one frame "[other]", so that sums stay right.
 */

static const uint64_t engine_part_distance_ns = 1000000;

int engine_sink(const void *data, size_t size, void *arg) {
    buffer_append(arg, data, size);
    return buffer_error(arg);
}

int engine_request_init(EngineRequest *request, const EngineInput *input) {
    const Interval *interval = input->interval;

    *request = (EngineRequest){
        .input = input,
        .export = {.profile = interval->profile,
                   .names = interval->names,
                   .event = PROFILE_NONE,
                   .by_period = true,
                   .since_ns = interval->since_ns,
                   .until_ns = interval->until_ns,
                   .is_real = true,
                   .name_all = true,
                   .keys = profile_key_bit(PROFILE_PID) | profile_key_bit(PROFILE_TID),
                   .weight = input->weight,
                   .part_of_label = input->series->of_label}};
    return export_cells_fill(&request->cells, &request->export, input->series->of_label);
}

int engine_request_init_pprof(EngineRequest *request, const EngineInput *input, Pprof **ret) {
    int r = engine_request_init(request, input);

    request->export.is_plain = true;
    return r < 0 ? r : pprof_new(&request->export, ret);
}

void engine_request_done(EngineRequest *request) {
    export_cells_done(&request->cells);
}

size_t engine_series_samples(const EngineRequest *request, size_t series) {
    return export_cells_of_group(&request->cells, (uint32_t)series).n;
}

/* Sums up the cells from `first` on. */
static void engine_fold(const EngineRequest *request, const ExportCells *cells, size_t first,
                        PprofPart *part) {
    for (size_t i = first; i < cells->n; i++) {
        const ProfileCell *cell = export_cell(&request->export, &cells->items[i]);

        part->other_samples += cell->samples;
        part->other_period += cell->period;
    }
}

size_t engine_parts(const EngineRequest *request, size_t series, size_t max_stacks, size_t keep,
                    PprofPart ret[ENGINE_PARTS_MAX]) {
    ExportCells cells = export_cells_of_group(&request->cells, (uint32_t)series);
    size_t kept = cells.n, n = 0;

    if (max_stacks == 0 || max_stacks > cells.n)
        max_stacks = MAX(cells.n, (size_t)1);
    keep = MIN(keep, max_stacks * ENGINE_PARTS_MAX);
    if (cells.n > keep) {
        export_cells_by_samples(&cells, &request->export);
        kept = MAX(keep, (size_t)1) - 1;
    }
    for (size_t first = 0; first < cells.n && (n == 0 || first < kept); first += max_stacks, n++)
        ret[n] = (PprofPart){
            .cells = cells.items + first,
            .n = MIN(max_stacks, kept - first),
            .event = request->input->series->items[series].event,
            .since_ns = request->export.since_ns + n * engine_part_distance_ns,
            .until_ns = request->export.until_ns + n * engine_part_distance_ns,
        };
    if (n > 0)
        engine_fold(request, &cells, kept, &ret[n - 1]);
    return n;
}

uint64_t engine_folded(const PprofPart *parts, size_t n) {
    uint64_t folded = 0;

    for (size_t i = 0; i < n; i++)
        folded += parts[i].other_samples;
    return folded;
}

size_t engine_shrink(size_t keep, size_t size, size_t max_bytes) {
    size_t fit = (size_t)((double)keep * (double)max_bytes / (double)size);

    return MIN(fit, keep - keep / 16 - 1);
}

static int engine_fill_one(const EngineRequest *request, size_t series, size_t max_stacks,
                           EnginePut put, void *userdata, Buffer *body, uint64_t *ret_folded) {
    size_t max_bytes = request->input->max_bytes ?: SIZE_MAX, before = body->size;
    size_t keep = engine_series_samples(request, series), n;
    PprofPart parts[ENGINE_PARTS_MAX];
    int r;

    for (;;) {
        n = engine_parts(request, series, max_stacks, keep, parts);
        r = n > 0 ? put(request, series, parts, n, userdata, body) : 0;
        if (r < 0 || buffer_error(body))
            return r < 0 ? r : buffer_error(body);
        if (body->size - before <= max_bytes || keep <= ENGINE_STACKS_MIN)
            break;
        keep = engine_shrink(keep, body->size - before, max_bytes);
        body->size = before;
    }
    *ret_folded = engine_folded(parts, n);
    return 0;
}

int engine_fill(const EngineRequest *request, size_t max_stacks, EnginePut put, void *userdata,
                Buffer *body, size_t *ret_next) {
    size_t max_bytes = request->input->max_bytes ?: SIZE_MAX, i = request->input->first;
    uint64_t folded = 0, of_one = 0;
    int r;

    for (; i < request->input->series->n; i++) {
        size_t before = body->size;

        r = engine_fill_one(request, i, max_stacks, put, userdata, body, &of_one);
        if (r < 0)
            return r;
        if (body->size > max_bytes && before > 0) {
            body->size = before;
            break;
        }
        folded += of_one;
    }
    if (request->input->folded)
        *request->input->folded += folded;
    *ret_next = i;
    return 0;
}

bool engine_label_is_sent(const Label *label) {
    return strncmp(label->name, "__", 2) != 0;
}

void engine_label_value(const char *value, Buffer *out) {
    size_t before = out->size, end = before, n;
    uint32_t c;

    text_escape_again(out, (Bytes){.data = (const uint8_t *)value, .size = strlen(value)});
    if (buffer_error(out) || out->size - before <= ENGINE_VALUE_MAX)
        return;
    while ((n = text_code_point(out->data + end, out->size - end, &c)) > 0 &&
           end + n - before <= ENGINE_VALUE_MAX)
        end += n;
    out->size = end;
}

/* The bytes of a name that engines refuse in it become "_". */
static void engine_put_name(Bytes name, Buffer *out) {
    size_t n = MIN(name.size, (size_t)ENGINE_VALUE_MAX);

    if (n > 0 && name.data[0] >= '0' && name.data[0] <= '9')
        text_putc(out, '_');
    for (size_t i = 0; i < n; i++) {
        char c = (char)name.data[i];
        bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        text_putc(out, kept ? c : '_');
    }
    if (n == 0)
        text_puts(out, "event");
}

void engine_series_name(const EngineRequest *request, const Series *series, Buffer *out) {
    const Profile *profile = request->export.profile;
    const char *name = label_set_get(&series->labels, "__name__");

    if (name)
        engine_put_name((Bytes){.data = (const uint8_t *)name, .size = strlen(name)}, out);
    else if (series->event < profile->n_events && !profile->events[series->event].is_time)
        engine_put_name(text_set_get(profile->texts, profile->events[series->event].name), out);
    else
        text_puts(out, "process_cpu");
}

int engine_put_labels(const EngineRequest *request, const Series *series, EnginePutLabel put,
                      Buffer *body) {
    _cleanup_(buffer_done) Buffer value = {};

    engine_series_name(request, series, &value);
    put("__name__", buffer_bytes(&value), body);
    for (size_t i = 0; i < series->labels.n; i++) {
        const Label *label = &series->labels.list[i];

        if (!engine_label_is_sent(label))
            continue;
        if (buffer_error(&value))
            return -ENOMEM;
        buffer_clear(&value);
        engine_label_value(label->value, &value);
        put(label->name, buffer_bytes(&value), body);
    }
    return buffer_error(&value);
}
