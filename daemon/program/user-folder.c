/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/user-folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

/*
 * $XDG_STATE_HOME/profd, else ~/.local/state/profd, and $XDG_RUNTIME_DIR/profd. Relative paths are
 * ignored, as the specification of these variables demands.
 */

static const char *user_folder_of(const char *variable) {
    const char *value = getenv(variable);

    return value && value[0] == '/' ? value : NULL;
}

static int user_folder_join(const char *folder, const char *below, char **ret) {
    if (!folder || asprintf(ret, "%s/%s", folder, below) >= 0)
        return 0;
    *ret = NULL;
    return -ENOMEM;
}

static int user_folder_find_store(char **ret) {
    const char *state = user_folder_of("XDG_STATE_HOME"), *home = user_folder_of("HOME");

    if (!state && !home)
        return -ENOENT;
    return state ? user_folder_join(state, "profd", ret)
                 : user_folder_join(home, ".local/state/profd", ret);
}

static int user_folder_add_word(const char *option, const char *value, char **word, char ***end) {
    if (!value)
        return 0;
    if (asprintf(word, "%s=%s", option, value) < 0) {
        *word = NULL;
        return -ENOMEM;
    }
    *(*end)++ = *word;
    return 0;
}

int user_folders_find(const Options *options, int argc, char **argv, UserFolders *ret) {
    _cleanup_(user_folders_done) UserFolders folders = {};
    char **end;
    int r = options->store ? 0 : user_folder_find_store(&folders.store);

    if (r == 0 && !options->runtime)
        r = user_folder_join(user_folder_of("XDG_RUNTIME_DIR"), "profd", &folders.runtime);
    if (r < 0)
        return r;
    folders.argv = calloc((size_t)argc + ARRAY_SIZE(folders.words) + 1, sizeof(*folders.argv));
    if (!folders.argv)
        return -ENOMEM;
    memcpy(folders.argv, argv, (size_t)argc * sizeof(*argv));
    end = folders.argv + argc;
    r = user_folder_add_word("--store", folders.store, &folders.words[0], &end);
    if (r == 0)
        r = user_folder_add_word("--runtime", folders.runtime, &folders.words[1], &end);
    if (r < 0)
        return r;
    *ret = folders;
    folders = (UserFolders){};
    return 0;
}

void user_folders_done(UserFolders *folders) {
    free(folders->store);
    free(folders->runtime);
    free(folders->argv);
    for (size_t i = 0; i < ARRAY_SIZE(folders->words); i++)
        free(folders->words[i]);
    *folders = (UserFolders){};
}
