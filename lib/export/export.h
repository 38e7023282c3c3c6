/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes a profile in formats of other programs. A format is a row of one table; it hands its bytes
 * to a sink piece by piece, so that no output is held in memory as a whole.
 */

#include "profile/frame-names.h"
#include "profile/profile.h"

typedef struct ExportInput {
    const Profile *profile;
    const FrameNames *names; /* of all of its frames */
    uint32_t event;          /* the event to export; PROFILE_NONE: all, where the format can */
    bool by_period;          /* weights are periods, else counts of samples */
    const char *title;       /* of the host or file; may be NULL */
    /* The window that the profile is of, times of the recording; equal: from its first sample to
     * its last. */
    uint64_t since_ns, until_ns;
} ExportInput;

/* Takes bytes; a negative errno ends the export and is returned. */
typedef int (*ExportSink)(const void *data, size_t size, void *arg);

typedef struct ExportFormat {
    const char *name;    /* "pprof", as the command of profctl */
    const char *suffix;  /* of a file: ".pb.gz" */
    const char *summary; /* one line without a full stop */
    bool is_text;
    unsigned keys;         /* the labels that it can show, bits of ProfileKey */
    unsigned default_keys; /* those that make sense unless others are asked for */
    uint64_t bucket_ns;    /* how exact PROFILE_TIME should be; 0: it shows no times */
    int (*write)(const ExportInput *input, ExportSink sink, void *arg);
} ExportFormat;

/* Ends with a row without a name. */
extern const ExportFormat export_formats[];

const ExportFormat *export_format_by_name(const char *name);
