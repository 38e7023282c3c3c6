/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What lies between the thread that reads and the loop: requests one way, results the other. */

#include "elf/note.h"
#include "scan/cache/mapped-image.h"
#include "util/macro.h"

enum {
    SCAN_PROCESSES_MAX = 4096, /* asked for one by one and not yet read */
    SCAN_IMAGES_MAX = 8192,    /* whose build ids are wanted, whose tables are wanted */
    SCAN_RESULTS_MAX = 128,
    SCAN_ANNOUNCED = 32, /* results that are announced at once, if more work follows */
    SCAN_IMAGES_MAX_BYTES = 4 << 20,
    SCAN_RESULTS_MAX_BYTES = 4 << 20, /* or a single one, however large */
};

/* What is wanted, the most urgent first. */
typedef enum ScanWork {
    SCAN_STOP,
    SCAN_KERNEL,
    SCAN_CGROUPS,
    SCAN_LOOK, /* which processes are there */
    SCAN_PROCESS,
    SCAN_IMAGE, /* the build id of a file */
    SCAN_TABLE, /* its unwind table */
    SCAN_PASS,  /* the next process of all of them */
} ScanWork;

typedef struct ScanImage {
    struct ScanImage *next;
    ScanWork work; /* IMAGE or TABLE */
    uint64_t image;
    MappedImage mapped; /* its path is the one below */
    size_t size;        /* of all of it */
    unsigned tries;     /* so far */
    char path[];
} ScanImage;

typedef struct ScanRequest {
    ScanWork work;
    uint32_t pid;
    ScanImage *image; /* the taker's to free */
    bool begins;      /* PASS: a new one */
} ScanRequest;

typedef enum ScanKind {
    SCAN_IS_PROCESS,
    SCAN_IS_KERNEL,
    SCAN_IS_CGROUP,
    SCAN_IS_CGROUPS_DONE,
    SCAN_IS_BUILD_ID,
    SCAN_IS_TABLE,
    SCAN_IS_ALL_DONE,
    SCAN_IS_LOOK,
} ScanKind;

typedef struct ScanResult {
    struct ScanResult *next;
    ScanKind kind;
    size_t size;
    uint64_t number; /* CGROUP: id; BUILD_ID: image; CGROUPS_DONE, ALL_DONE, LOOK: when it began */
    /* PROCESS: Baseline; KERNEL: records; CGROUP: path; LOOK: array; TABLE: TableAnswer. Freed with
     * it. */
    void *data;
    size_t data_size;
    BuildId build_id;
} ScanResult;

ScanResult *scan_result_free(ScanResult *result);
DEFINE_CLEANUP(ScanResult *, scan_result_free);

typedef struct ScanQueue ScanQueue;

int scan_queue_new(ScanQueue **ret);
/* No thread may wait any more. */
ScanQueue *scan_queue_free(ScanQueue *queue);
DEFINE_CLEANUP(ScanQueue *, scan_queue_free);

/* KERNEL, CGROUPS, LOOK or PASS; asking again before it is begun changes nothing. */
void scan_queue_ask(ScanQueue *queue, ScanWork work);
/* -ENOBUFS: too many wait. The image is taken over only on success, for what its `work` says. */
int scan_queue_ask_process(ScanQueue *queue, uint32_t pid);
int scan_queue_ask_image(ScanQueue *queue, ScanImage *image);
/* Images wait until then, by the monotonic clock, and other work goes on. The thread's side. */
void scan_queue_rest(ScanQueue *queue, uint64_t until_ns);
/* From now on the thread is told to stop and its results are dropped. */
void scan_queue_stop(ScanQueue *queue);

/* The thread's side: waits for the next thing to do. */
ScanRequest scan_queue_next(ScanQueue *queue, bool in_pass);
/* Takes over the result, and waits until there is room. -ECANCELED: it is time to stop. */
int scan_queue_put(ScanQueue *queue, ScanResult *result);

/* The loop's side: readable while there is something to take, though results that follow each
 * other closely are announced together. */
int scan_queue_fd(const ScanQueue *queue);
/* Up to max results, chained, the first one first; or NULL. */
ScanResult *scan_queue_take(ScanQueue *queue, size_t max);
