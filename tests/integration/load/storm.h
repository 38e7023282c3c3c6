/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The scenes of the storm: each makes a few processes or threads, waits for them, and returns.
 * What works in a function NAME_work has the name that recording.py's table gives it.
 */

typedef struct Stage {
    const char *folder; /* for copies of programs, private to one lane */
    const char *self;   /* the program that plays, as a path */
    const char *plugin; /* the library that scenes load */
} Stage;

/* How the program is called to play a part that begins with exec. */
#define STORM_PART "--part"

enum {
    PART_MS = 3,
    PATH_BYTES = 4096,
};

/* What exec'd copies do: work, or exec the next one first. Arguments as after STORM_PART. */
int storm_part(int argc, char **argv);

void scene_inherit(const Stage *stage);
void scene_fork(const Stage *stage);
void scene_name(const Stage *stage);
void scene_thread(const Stage *stage);
void scene_code(const Stage *stage);
void scene_plugin(const Stage *stage);
void scene_reuse(const Stage *stage);
void scene_space(const Stage *stage);
void scene_exec(const Stage *stage);
void scene_chain(const Stage *stage);
void scene_vfork(const Stage *stage);
void scene_memfd(const Stage *stage);
void scene_deleted(const Stage *stage);
void scene_replaced(const Stage *stage);
