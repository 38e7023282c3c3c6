/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What profd has: a window of the past as a recording, or one of its snapshots. Windows are
 * transient snapshots, which profd deletes when the connection ends. All functions wait, so they
 * are for a task; what fails has a sentence.
 */

#include <stdatomic.h>

#include "s3/s3-object.h"

enum {
    S3_NAME_MAX = 65,
    S3_FILES_MAX = 64, /* of a recording that is a folder */
    S3_FILE_NAME_MAX = 16,
    S3_SNAPSHOTS_MAX = 4096,
};

typedef enum S3Lack {
    S3_LACK_UNKNOWN,      /* it may have been recorded */
    S3_LACK_DELETED,      /* it was recorded, and profd has deleted it */
    S3_LACK_NOT_RECORDED, /* so there is nothing to upload */
} S3Lack;

typedef struct S3Profd {
    const char *socket; /* NULL: the default one */
    const char *session;
    const char *folder;      /* for objects that do not stay in memory */
    const atomic_bool *stop; /* -ECANCELED soon after it is set */
    char problem[S3_SENTENCE_MAX];
    long problem_status; /* SEND_STATUS_SOURCE, _LOCAL or _LOST */
    S3Lack lack;         /* why there is nothing of a window of -ENODATA */
} S3Profd;

typedef struct S3Window {
    S3Object object;
    uint64_t samples;
    uint64_t missing_ns; /* how much of the window was not recorded on any CPU */
    uint64_t deleted_ns; /* of that, what profd has deleted */
    uint64_t older_ns;   /* the end of what an earlier boot recorded of it, which is not in the
                          * object; 0: nothing */
} S3Window;

/* [since, until) by CLOCK_REALTIME. -ENODATA: nothing of it was recorded, or all of it was deleted;
 * -EACCES: it may not be read; -ENOTCONN: profd is away, or busy. */
int s3_profd_window(S3Profd *profd, uint64_t since_ns, uint64_t until_ns, S3Window *ret);

typedef struct S3Snapshot {
    char name[S3_NAME_MAX];
    uint64_t created_us;
    uint64_t samples;
    bool is_folder;
    char files[S3_FILES_MAX][S3_FILE_NAME_MAX];
    size_t n_files;   /* of a folder */
    size_t next_file; /* those before it were uploaded; the caller's */
} S3Snapshot;

/* Calls `each` for each snapshot, also with one that it has seen before. A negative value stops. */
int s3_profd_list(S3Profd *profd, int (*each)(void *userdata, const S3Snapshot *snapshot),
                  void *userdata);
/* One of its files; "" where it is one file. -ENODATA: it was removed. */
int s3_profd_snapshot(S3Profd *profd, const char *name, const char *file, S3Object *ret);
