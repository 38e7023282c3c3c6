/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine of our own in a private folder: PMUs as in sysfs, tracepoints as in tracefs. */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/event/event-list.h"
#include "util/file.h"

typedef struct MadeHost {
    char root[64], sysfs[80];
    EventHost host;
} MadeHost;

static int made_remove(const char *path, const struct stat *st _unused_, int flag _unused_,
                       struct FTW *ftw _unused_) {
    return remove(path);
}

static inline void made_host_done(MadeHost *m) {
    if (m->root[0])
        (void)nftw(m->root, made_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int made_open_tracefs(void *userdata, const char *path, int *ret_fd) {
    MadeHost *m = userdata;
    char full[1024];
    int fd;

    snprintf(full, sizeof(full), "%s/tracing/events/%s", m->root, path);
    fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

/* A file below the root, its folders made. */
static inline int made_file(MadeHost *m, const char *path, const char *content) {
    _cleanup_close_ int fd = -1;
    char full[1024], *slash;
    int r;

    snprintf(full, sizeof(full), "%s/%s", m->root, path);
    slash = strrchr(full, '/');
    *slash = '\0';
    r = file_make_folders(full, 0755);
    if (r < 0)
        return r;
    *slash = '/';
    fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : file_write_all(fd, content, strlen(content));
}

/* A file of a PMU. */
static inline int made_pmu(MadeHost *m, const char *path, const char *content) {
    char full[512];

    snprintf(full, sizeof(full), "sys/bus/event_source/devices/%s", path);
    return made_file(m, full, content);
}

static inline int made_tracepoint(MadeHost *m, const char *system, const char *name, unsigned id) {
    char path[512], text[512];
    int r;

    snprintf(path, sizeof(path), "tracing/events/%s/%s/id", system, name);
    snprintf(text, sizeof(text), "%u\n", id);
    r = made_file(m, path, text);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "tracing/events/%s/%s/format", system, name);
    snprintf(text, sizeof(text),
             "name: %s\nID: %u\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;"
             "\tsigned:0;\n\n\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n\n"
             "print fmt: \"%%d\", REC->pid\n",
             name, id);
    return made_file(m, path, text);
}

static inline int made_host_init(MadeHost *m) {
    /* clang-format off */
    static const char *const files[][2] = {
        { "cpu/type",                    "4\n"                         },
        { "cpu/format/event",            "config:0-7,32-35\n"          },
        { "cpu/format/umask",            "config:8-15\n"               },
        { "cpu/format/edge",             "config:18\n"                 },
        { "cpu/format/ldlat",            "config1:0-15\n"              },
        { "cpu/format/offcore_rsp",      "config2:0-63\n"              },
        { "cpu/format/snoop",            "config3:0-3\n"               },
        { "cpu/events/mem-loads",        "event=0xcd,umask=0x1,ldlat=3\n" },
        { "cpu/events/cycles-ct",        "event=0x3c,umask=0x0\n"      },
        { "cpu/events/slots.scale",      "1.0\n"                       },
        { "uncore_imc_0/type",           "14\n"                        },
        { "uncore_imc_0/cpumask",        "0\n"                         },
        { "uncore_imc_0/format/event",   "config:0-7\n"                },
        { "uncore_imc_0/events/cas",     "event=0x04\n"                },
        { "uncore_imc_1/type",           "15\n"                        },
        { "uncore_imc_1/cpumask",        "8\n"                         },
        { "uncore_imc_1/format/event",   "config:0-7\n"                },
        { "uncore_imc_1/events/cas",     "event=0x04\n"                },
        { "hv_24x7/type",                "20\n"                        },
        { "hv_24x7/format/domain",       "config:0-3\n"                },
        { "hv_24x7/format/core",         "config:16-31\n"              },
        { "hv_24x7/events/PM_X",         "domain=1,core=?\n"           },
        { "broken/type",                 "many\n"                      },
        { "bits/type",                   "21\n"                        },
        { "bits/format/bad",             "config:7-0\n"                },
        { "bits/format/far",             "config:60-70\n"              },
        { "bits/format/other",           "config9:0\n"                 },
    };
    /* clang-format on */
    int r = 0;

    *m = (MadeHost){.root = "/tmp/profd-events.XXXXXX"};
    if (!mkdtemp(m->root))
        return -errno;
    snprintf(m->sysfs, sizeof(m->sysfs), "%s/sys", m->root);
    m->host = (EventHost){.sysfs = m->sysfs, .open_tracefs = made_open_tracefs, .userdata = m};
    for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++)
        r = made_pmu(m, files[i][0], files[i][1]);
    if (r == 0)
        r = made_tracepoint(m, "sched", "sched_switch", 316);
    if (r == 0)
        r = made_tracepoint(m, "sched", "sched_wakeup", 317);
    if (r == 0)
        r = made_tracepoint(m, "block", "block_rq_issue", 400);
    if (r == 0)
        r = made_tracepoint(m, "ftrace", "function", 1);
    if (r == 0)
        r = made_file(m, "tracing/events/header_page", "page\n");
    if (r == 0)
        r = made_file(m, "tracing/events/header_event", "# event\n");
    if (r == 0)
        r = made_file(m, "tracing/events/sched/enable", "0\n");
    return r;
}
