/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The queues between the reading thread and the loop: requests one way, results the other. */

#include "elf/note.h"
#include "process/history/history.h"
#include "scan/cache/mapped-image.h"
#include "util/macro.h"

enum {
    SCAN_PROCESSES_MAX = 4096, /* requested one by one and not yet read */
    SCAN_IMAGES_MAX = 8192,    /* of each kind of work on files */
    SCAN_RESULTS_MAX = 128,
    SCAN_ANNOUNCED = 32, /* results that wake the loop together if more work follows */
    SCAN_IMAGES_MAX_BYTES = 4 << 20,
    SCAN_RESULTS_MAX_BYTES = 4 << 20, /* or a single result, however large */
};

/* The kinds of work, the most urgent first. */
typedef enum ScanWork {
    SCAN_STOP,
    SCAN_KERNEL,
    SCAN_CGROUPS,
    SCAN_LIST, /* list the processes */
    SCAN_PROCESS,
    SCAN_CHECK,    /* whether a file was overwritten since its build id was read */
    SCAN_IMAGE,    /* the build id of a file */
    SCAN_PASS,     /* the next process in a pass over all */
    SCAN_LATE,     /* a process whose maps could not be read in time */
    SCAN_TABLE,    /* the unwind table of a file: it comes late, since names must not wait for it */
    SCAN_CODE_MAP, /* the file in which a process names the code that it generates */
    SCAN_SYMBOLS,  /* what names the code of a file */
    SCAN_WORKS,    /* the number of kinds */
} ScanWork;

typedef struct ScanImage {
    struct ScanImage *next;
    ScanWork work; /* CHECK, IMAGE, TABLE, CODE_MAP or SYMBOLS */
    uint64_t image;
    uint64_t version;   /* CHECK: of the content that is known */
    MappedImage mapped; /* its path is the array below */
    size_t size;        /* of the whole struct */
    unsigned tries;     /* so far */
    bool has_fd;        /* CODE_MAP: the file is open already, and what follows is known of it */
    int fd;
    uint64_t start_ns, file_size;
    int64_t mtime_ns;
    char path[];
} ScanImage;

ScanImage *scan_image_free(ScanImage *image);
DEFINE_CLEANUP(ScanImage *, scan_image_free);

typedef struct ScanRequest {
    ScanWork work;
    uint32_t pid;
    ScanImage *image; /* owned by the thread that takes the request */
    bool begins;      /* PASS: a new pass begins */
} ScanRequest;

typedef enum ScanKind {
    SCAN_IS_PROCESS,
    SCAN_IS_KERNEL,
    SCAN_IS_CGROUP,
    SCAN_IS_CGROUPS_DONE,
    SCAN_IS_BUILD_ID,
    SCAN_IS_CHECK,
    SCAN_IS_TABLE,
    SCAN_IS_SYMBOLS,
    SCAN_IS_CODE_MAP,
    SCAN_IS_ALL_DONE,
    SCAN_IS_LOOK,
} ScanKind;

typedef struct ScanResult {
    struct ScanResult *next;
    ScanKind kind;
    size_t size;
    uint64_t number; /* CGROUP: id; BUILD_ID, CHECK: image; CGROUPS_DONE, ALL_DONE, LIST: when it
                        began */
    /* PROCESS: Baseline; KERNEL: records; CGROUP: path; LOOK: array; TABLE: TableAnswer; SYMBOLS:
     * SymbolsAnswer; CODE_MAP: CodeMapAnswer. Freed with it. */
    void *data;
    size_t data_size;
    BuildId build_id;
    uint64_t version;       /* BUILD_ID: of the content from which it was read */
    HistoryVerdict verdict; /* CHECK; and when the file was changed */
    uint64_t changed_ns;
} ScanResult;

ScanResult *scan_result_free(ScanResult *result);
DEFINE_CLEANUP(ScanResult *, scan_result_free);

typedef struct ScanQueue ScanQueue;

int scan_queue_new(ScanQueue **ret);
/* No thread may be waiting any more. */
ScanQueue *scan_queue_free(ScanQueue *queue);
DEFINE_CLEANUP(ScanQueue *, scan_queue_free);

/* For KERNEL, CGROUPS, LIST, PASS or LATE; a second request before the first is begun changes
 * nothing. */
void scan_queue_ask(ScanQueue *queue, ScanWork work);
/* -ENOBUFS: too many wait. The image is taken over only on success, for what its `work` says. */
int scan_queue_ask_process(ScanQueue *queue, uint32_t pid);
int scan_queue_ask_image(ScanQueue *queue, ScanImage *image);
/* Delays this work until then, in CLOCK_MONOTONIC, while other work goes on: that for CHECK, for
 * IMAGE, for LATE, for TABLE, or for SYMBOLS and CODE_MAP together. For the reading thread. */
void scan_queue_rest(ScanQueue *queue, ScanWork work, uint64_t until_ns);
/* Until then this work is done only where there is no other, less urgent work included. */
void scan_queue_put_last(ScanQueue *queue, ScanWork work, uint64_t until_ns);
/* From now on the thread gets SCAN_STOP and its results are dropped. */
void scan_queue_stop(ScanQueue *queue);

/* For the reading thread: waits for the next work. */
ScanRequest scan_queue_next(ScanQueue *queue, bool in_pass);
/* Takes over the result, and waits until there is space. -ECANCELED: the thread must stop. */
int scan_queue_put(ScanQueue *queue, ScanResult *result);

/* For the loop: readable while there are results, though results in quick succession wake it
 * together. */
int scan_queue_fd(const ScanQueue *queue);
/* Up to max results in a list, oldest first; or NULL. */
ScanResult *scan_queue_take(ScanQueue *queue, size_t max);
