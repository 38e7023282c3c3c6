/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes a profile in formats of other programs. A format is a row of one table; it hands its bytes
 * to a sink piece by piece, so that no output is held in memory as a whole.
 */

#include "profile/frame-names.h"
#include "profile/profile.h"

/* A label that the profile does not have by itself. */
typedef struct ExportLabel {
    const char *name, *value;
} ExportLabel;

typedef struct ExportLabels {
    const ExportLabel *list;
    size_t n; /* at most EXPORT_LABELS_MAX */
} ExportLabels;

enum {
    EXPORT_LABELS_MAX = 64,
};

#define EXPORT_NO_PART UINT32_MAX /* is not exported */

typedef struct ExportInput {
    const Profile *profile;
    const FrameNames *names; /* of all of its frames */
    uint32_t event;          /* the event to export; PROFILE_NONE: all, where the format can */
    bool by_period;          /* weights are periods, else counts of samples */
    const char *title;       /* of the host or file; may be NULL */
    /* The window that the profile is of, times of the recording; equal: from its first sample to
     * its last. */
    uint64_t since_ns, until_ns;
    bool is_real; /* they are those of CLOCK_REALTIME instead */

    /* The rest is for pprof and for whoever walks over cells; zero is how profctl exports. */
    bool name_all;                       /* frames without a symbol get a name: "file+0xoffset" */
    bool is_plain;                       /* pprof is not compressed */
    unsigned keys;                       /* labels of samples, bits of ProfileKey; 0: all */
    double weight;                       /* a sample stands for so many; 0: for one */
    const uint32_t *part_of_label;       /* the part of each label; NULL: all are of part 0 */
    const ExportLabels *labels_of_parts; /* more labels, by part; NULL: none */
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
