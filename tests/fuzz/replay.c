/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The main of a fuzzer in an ordinary build: feeds every file of the folder named on the command
 * line to LLVMFuzzerTestOneInput, so that what a fuzzer once found stays fixed. Each name is
 * printed before its turn: after a crash the last one is the culprit.
 */

#include "test.h"

#include <dirent.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { input_limit_bytes = 64 << 20 };

static const char *corpus;

static int replay_file(const char *path) {
    uint8_t *data = NULL;
    size_t got = 0;
    struct stat status;
    int r = -EIO;
    FILE *file = fopen(path, "re");

    if (!file)
        return -errno;
    if (fstat(fileno(file), &status) == 0 && status.st_size <= input_limit_bytes) {
        /* Exactly as large as the input: a byte read beyond it is then the sanitizer's. */
        data = malloc(status.st_size ? (size_t)status.st_size : 1);
        got = data ? fread(data, 1, (size_t)status.st_size, file) : 0;
        r = data && got == (size_t)status.st_size ? 0 : -EIO;
    }
    fclose(file);
    if (r == 0)
        LLVMFuzzerTestOneInput(data, got);
    free(data);
    return r;
}

static int is_shown(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

TEST(empty_input_does_not_crash_the_fuzzer) {
    uint8_t nothing = 0;

    CHECK_EQ(LLVMFuzzerTestOneInput(&nothing, 0), 0);
}

TEST(no_file_of_the_corpus_crashes_the_fuzzer) {
    struct dirent **entries = NULL;
    char path[4096];
    int n;

    n = scandir(corpus, &entries, is_shown, alphasort);
    CHECK(n > 0);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", corpus, entries[i]->d_name);
        free(entries[i]);
        printf("# %s\n", path);
        CHECK_OK(replay_file(path));
    }
    free(entries);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "Usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    corpus = argv[1];
    return test_main(1, argv);
}
