/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include <inttypes.h>
#include <time.h>

#include "util/clock.h"
#include "util/text.h"

/*
 * The recording itself: what its samples contain, its time span, its clock and its container
 * format.
 */

enum { CLOCK_DATA_VERSION = 1 };

BIT_FEATURE(branch_stack, "contains samples with branch stack");
BIT_FEATURE(stat, "contains stat data");
/* perf multiplies where it should divide; its output is reproduced. */
NUMBER_FEATURE(clockid, u64, clockid_resolution_ns, "clockid frequency: %" PRIu64 " MHz", 1000);
NUMBER_FEATURE(dir_format, u64, dir_version, "directory data version : %" PRIu64, 1);

void code_sample_time(Codec *c, PdEnvironment *env) {
    codec_u64(c, &env->first_sample_time);
    codec_u64(c, &env->last_sample_time);
}

static void feature_stream_print_usec(Buffer *out, const char *label, uint64_t time_ns) {
    text_printf(out, "# %s : %" PRIu64 ".%06" PRIu64 "\n", label, time_ns / NS_PER_SECOND,
                time_ns % NS_PER_SECOND / NS_PER_US);
}

void print_sample_time(const PdEnvironment *env, Buffer *out) {
    uint64_t duration = env->last_sample_time - env->first_sample_time;

    feature_stream_print_usec(out, "time of first sample", env->first_sample_time);
    feature_stream_print_usec(out, "time of last sample", env->last_sample_time);
    text_printf(out, "# sample duration : %10.3f ms\n", (double)duration / 1e6);
}

/* A nested object, because the plain names are used for times found in the samples themselves. */
void describe_sample_time(const PdEnvironment *env, Fields *fields) {
    fields_begin_object(fields, "sample_time");
    fields_time_ns(fields, "first", env->first_sample_time);
    fields_time_ns(fields, "last", env->last_sample_time);
    fields_end_object(fields);
}

void code_clock_data(Codec *c, PdEnvironment *env) {
    if (c->mode == CODEC_READ)
        env->clock_data_version = CLOCK_DATA_VERSION;
    codec_u32_is(c, CLOCK_DATA_VERSION);
    codec_u32(c, &env->clock_data_clockid);
    codec_u64(c, &env->clock_data_wall_ns);
    codec_u64(c, &env->clock_data_clockid_ns);
}

static const char *feature_stream_clock_name(uint32_t clockid) {
    /* clang-format off */
    static const char *const names[] = {
        [CLOCK_REALTIME]      = "realtime",
        [CLOCK_MONOTONIC]     = "monotonic",
        [CLOCK_MONOTONIC_RAW] = "monotonic_raw",
        [CLOCK_BOOTTIME]      = "boottime",
        [CLOCK_TAI]           = "tai",
    };
    /* clang-format on */

    return clockid < ARRAY_SIZE(names) && names[clockid] ? names[clockid] : "(not found)";
}

void print_clock_data(const PdEnvironment *env, Buffer *out) {
    const char *name = feature_stream_clock_name(env->clock_data_clockid);
    time_t seconds = (time_t)(env->clock_data_wall_ns / NS_PER_SECOND);
    uint64_t us = env->clock_data_wall_ns % NS_PER_SECOND / NS_PER_US;
    char date[64] = "<error>";
    struct tm tm;

    if (localtime_r(&seconds, &tm))
        (void)strftime(date, sizeof(date), "%F %T", &tm);
    text_printf(out, "# clockid: %s (%u)\n", name, env->clock_data_clockid);
    text_printf(out,
                "# reference time: %s.%06" PRIu64 " = %" PRIu64 ".%06" PRIu64 " (TOD) = ", date, us,
                (uint64_t)seconds, us);
    text_time_ns(out, env->clock_data_clockid_ns);
    text_printf(out, " (%s)\n", name);
}

void describe_clock_data(const PdEnvironment *env, Fields *fields) {
    fields_begin_object(fields, "clock_data");
    fields_u64(fields, "clockid", env->clock_data_clockid);
    fields_str(fields, "name", feature_stream_clock_name(env->clock_data_clockid));
    fields_time_ns(fields, "wall", env->clock_data_wall_ns);
    fields_time_ns(fields, "clock", env->clock_data_clockid_ns);
    fields_end_object(fields);
}

void code_compressed(Codec *c, PdEnvironment *env) {
    codec_u32(c, &env->compressed_version);
    codec_u32(c, &env->compressed_type);
    codec_u32(c, &env->compressed_level);
    codec_u32(c, &env->compressed_ratio);
    codec_u32(c, &env->compressed_mmap_len);
}

static const char *feature_stream_compression_name(uint32_t type) {
    return type == PD_COMPRESSED_ZSTD ? "Zstd" : "Unknown";
}

void print_compressed(const PdEnvironment *env, Buffer *out) {
    text_printf(out, "# compressed : %s, level = %d, ratio = %d\n",
                feature_stream_compression_name(env->compressed_type), (int)env->compressed_level,
                (int)env->compressed_ratio);
}

void describe_compressed(const PdEnvironment *env, Fields *fields) {
    fields_begin_object(fields, "compressed");
    fields_u64(fields, "version", env->compressed_version);
    fields_str(fields, "type", feature_stream_compression_name(env->compressed_type));
    fields_u64(fields, "level", env->compressed_level);
    fields_u64(fields, "ratio", env->compressed_ratio);
    fields_u64(fields, "mmap_len", env->compressed_mmap_len);
    fields_end_object(fields);
}
