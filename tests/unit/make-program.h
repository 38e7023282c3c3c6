/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Programs that a test compiles in a folder of its own, and where their functions are, as nm and
 * readelf say. Profiles of a few frames in them, by hand. */

#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "profile/frame-names.h"
#include "profile/profile.h"
#include "symbol/symbol.h"
#include "util/macro.h"

static char made_folder[64];

static inline void made_remove(void) {
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", made_folder);
    (void)!system(command);
}

static inline const char *made_in(void) {
    if (!made_folder[0]) {
        strcpy(made_folder, "/tmp/test-symbol.XXXXXX");
        if (!mkdtemp(made_folder))
            abort();
        (void)atexit(made_remove);
    }
    return made_folder;
}

/* Runs a shell command in the folder; whether it succeeded. */
_printf_(1, 2) static inline bool made_run(const char *format, ...) {
    char command[4096];
    size_t n = (size_t)snprintf(command, sizeof(command), "cd %s && { ", made_in());
    va_list args;

    va_start(args, format);
    n += (size_t)vsnprintf(command + n, sizeof(command) - n, format, args);
    va_end(args);
    snprintf(command + n, sizeof(command) - n, "; } >>log 2>&1");
    return system(command) == 0;
}

static inline bool made_has(const char *program) {
    return made_run("command -v %s", program);
}

static inline const char *made_path(const char *name) {
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s", made_in(), name);
    return path;
}

static inline void made_write(const char *name, const char *text) {
    FILE *f = fopen(made_path(name), "w");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

static inline uint64_t made_number(const char *command) {
    unsigned long long v = UINT64_MAX;
    FILE *f = popen(command, "r");

    if (f && fscanf(f, "%llx", &v) != 1)
        v = UINT64_MAX;
    if (f)
        (void)pclose(f);
    return v;
}

/* The address of a symbol, as nm says. */
static inline uint64_t made_address(const char *file, const char *symbol) {
    char command[1024];

    snprintf(command, sizeof(command), "cd %s && nm %s | awk '$3 == \"%s\" { print $1; exit }'",
             made_in(), file, symbol);
    return made_number(command);
}

/* The offset in the file of an address in .text, by readelf. */
static inline uint64_t made_offset_of(const char *file, uint64_t address) {
    char command[1024];
    uint64_t start, offset;

    snprintf(command, sizeof(command),
             "cd %s && readelf -SW %s | sed -n 's/.* \\.text *PROGBITS *//p'", made_in(), file);
    start = made_number(command);
    strcat(command, " | cut -d' ' -f2");
    offset = made_number(command);
    return address - start + offset;
}

static inline uint64_t made_offset(const char *file, const char *symbol) {
    uint64_t address = made_address(file, symbol);

    return address == UINT64_MAX ? UINT64_MAX : made_offset_of(file, address);
}

/* The build id of a file, as readelf says. */
static inline void made_build_id(const char *file, FrameMapping *ret) {
    char command[1024], hex[64] = "";
    FILE *f;

    snprintf(command, sizeof(command), "readelf -n %s 2>/dev/null | sed -n 's/.*Build ID: //p'",
             made_path(file));
    f = popen(command, "r");
    if (f && !fgets(hex, sizeof(hex), f))
        hex[0] = '\0';
    if (f)
        (void)pclose(f);
    ret->build_id_size = 0;
    for (const char *p = hex; p[0] > ' ' && p[1] > ' '; p += 2) {
        unsigned byte;

        sscanf(p, "%2x", &byte);
        ret->build_id[ret->build_id_size++] = (uint8_t)byte;
    }
}

/* A mapping of a file by its build id; its identity besides is that of no file. */
static inline FrameMapping made_mapping(const char *file) {
    const char *path = made_path(file);
    FrameMapping m = {.kind = FRAME_USER,
                      .path = {.data = (const uint8_t *)path, .size = strlen(path)},
                      .inode = 1};

    made_build_id(file, &m);
    return m;
}

/* Who a file is without a build id. */
static inline void made_identify(const char *file, FrameMapping *m) {
    _cleanup_close_ int fd = open(made_path(file), O_RDONLY | O_CLOEXEC);
    struct stat st;
    int generation = 0;

    m->build_id_size = 0;
    memset(m->build_id, 0, sizeof(m->build_id));
    if (fd < 0 || fstat(fd, &st) < 0)
        abort();
    m->generation = ioctl(fd, FS_IOC_GETVERSION, &generation) == 0 ? (uint32_t)generation : 0;
    m->inode = st.st_ino;
    m->major = major(st.st_dev);
    m->minor = minor(st.st_dev);
}

/* -- profiles --------------------------------------------------------------------------------- */

typedef struct MadeProfile {
    Profile profile;
    FrameNames *names;
} MadeProfile;

static inline MadeProfile made_profile(void) {
    MadeProfile made = {};

    if (frame_table_new(&made.profile.frames) < 0 || frame_names_new(&made.names) < 0)
        abort();
    return made;
}

static inline void made_profile_done(MadeProfile *made) {
    frame_table_free(made->profile.frames);
    frame_names_free(made->names);
}

static inline uint32_t made_frame(MadeProfile *made, const FrameMapping *mapping, uint64_t address,
                                  bool is_return) {
    Frame frame = {.address = address, .is_return = is_return};
    uint32_t number;

    if (frame_table_add_mapping(made->profile.frames, mapping, &frame.mapping) < 0 ||
        frame_table_add(made->profile.frames, &frame, &number) < 0)
        abort();
    return number;
}

static inline int made_resolve(MadeProfile *made, const SymbolOptions *options) {
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = NULL;
    int r = symbol_resolver_new(options, &resolver);

    return r < 0 ? r : symbol_name_frames(resolver, &made->profile, made->names);
}

static inline const char *made_name(const MadeProfile *made, uint32_t frame) {
    return (const char *)frame_names_function(made->names, frame).data;
}

/* The name of one frame; in `ret_name` how it was found. */
static inline const char *made_look_up_as(const FrameMapping *mapping, uint64_t address,
                                          bool is_return, const SymbolOptions *options,
                                          FrameName *ret_name) {
    static char text[4096];
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    uint32_t frame = made_frame(&made, mapping, address, is_return);

    if (made_resolve(&made, options) < 0)
        abort();
    *ret_name = made.names->names[frame];
    snprintf(text, sizeof(text), "%s", made_name(&made, frame));
    return text;
}

static inline const char *made_look_up(const FrameMapping *mapping, uint64_t address,
                                       const SymbolOptions *options, FrameName *ret_name) {
    return made_look_up_as(mapping, address, false, options, ret_name);
}
