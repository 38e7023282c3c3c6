/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The executable mappings of a running process with the unwind tables of their files, for a walk.
 */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "unwind/compile/unwind-compile.h"
#include "unwind/unwind.h"
#include "util/macro.h"

enum { SCENE_MAPPINGS_MAX = 512 };

typedef struct SceneFile {
    char path[512];
    Buffer image;
    UnwindTable table;
    int error; /* of the table */
} SceneFile;

typedef struct Scene {
    UnwindMapping mappings[SCENE_MAPPINGS_MAX];
    size_t n;
    SceneFile files[SCENE_MAPPINGS_MAX];
    size_t n_files;
    UnwindSpace space;
} Scene;

static inline int64_t scene_read_memory(void *userdata, uint64_t offset, void *to, size_t n) {
    const Bytes *bytes = userdata;
    size_t left = offset < bytes->size ? bytes->size - (size_t)offset : 0;

    n = MIN(n, left);
    if (n > 0)
        memcpy(to, bytes->data + offset, n);
    return (int64_t)n;
}

/* The vdso is the same in every process: ours is read. */
static inline int scene_compile_vdso(size_t size, Buffer *ret) {
    Bytes vdso = {.data = (const void *)getauxval(AT_SYSINFO_EHDR), .size = size};
    UnwindSource source = {.read = scene_read_memory, .userdata = &vdso};

    return vdso.data ? unwind_compile(&source, ret) : -ENODATA;
}

static inline SceneFile *scene_file(Scene *scene, const char *path, size_t size) {
    SceneFile *file = scene->files;
    int fd;

    for (; file < scene->files + scene->n_files; file++)
        if (strcmp(file->path, path) == 0)
            return file;
    if (scene->n_files++ == SCENE_MAPPINGS_MAX)
        abort();
    (void)snprintf(file->path, sizeof(file->path), "%s", path);
    if (strcmp(path, "[vdso]") == 0) {
        file->error = scene_compile_vdso(size, &file->image);
    } else {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        file->error = fd < 0 ? -errno : unwind_compile_fd(fd, &file->image);
        if (fd >= 0)
            close(fd);
    }
    if (file->error == 0)
        file->error = unwind_table_open(buffer_bytes(&file->image), &file->table);
    return file;
}

static inline void scene_add(Scene *scene, uint64_t start, uint64_t end, uint64_t offset,
                             const char *path) {
    UnwindMapping *m = &scene->mappings[scene->n];
    const SceneFile *file;

    if (scene->n++ == SCENE_MAPPINGS_MAX)
        abort();
    *m = (UnwindMapping){.start = start, .end = end, .code = UNWIND_CODE_ANONYMOUS};
    if (path[0] != '/' && strcmp(path, "[vdso]") != 0)
        return;
    file = scene_file(scene, path, end - start);
    m->code = UNWIND_CODE_REFUSED;
    if (file->error == 0 &&
        unwind_table_bias(&file->table, start, end - start, offset, &m->bias) == 0) {
        m->table = &file->table;
        m->code = UNWIND_CODE_TABLE;
    }
}

static inline void scene_find(void *userdata, uint64_t address, UnwindMapping *ret) {
    const Scene *scene = userdata;
    size_t low = 0, high = scene->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (scene->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < scene->n && scene->mappings[low].start <= address)
        *ret = scene->mappings[low];
}

/* The scene of a process as it is now; 0: ourselves. */
static inline Scene *scene_new(int pid) {
    Scene *scene = calloc(1, sizeof(*scene));
    char path[64], line[1024];
    FILE *maps;

    if (!scene)
        abort();
    (void)snprintf(path, sizeof(path), pid ? "/proc/%d/maps" : "/proc/self/maps", pid);
    maps = fopen(path, "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        char name[512] = "", rights[8];
        unsigned long start, end, offset;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %511[^\n]", &start, &end, rights, &offset,
                   name) >= 4 &&
            rights[2] == 'x')
            scene_add(scene, start, end, offset, name);
    }
    if (maps)
        fclose(maps);
    scene->space = (UnwindSpace){.find = scene_find, .userdata = scene, .version = 1};
    return scene;
}

static inline Scene *scene_free(Scene *scene) {
    for (size_t i = 0; scene && i < scene->n_files; i++)
        buffer_done(&scene->files[i].image);
    free(scene);
    return NULL;
}

DEFINE_CLEANUP(Scene *, scene_free);
