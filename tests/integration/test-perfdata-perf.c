/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "perfdata/reader/reader.h"
#include "perfdata/writer/writer.h"
#include "test.h"
#include "util/file.h"

/*
 * The real perf checks what the writer writes: recordings of perf record are copied into every
 * layout, compressed or not, and cut and recovered; the output of perf script must stay the same.
 */

static char folder[] = "/tmp/perfdata-perf-XXXXXX";

/* clang-format off */
static const struct {
    const char *name, *arguments;
} shapes[] = {
    {"chains",     "-a -g -e cpu-clock,task-clock -F 999 -- sh -c 'i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; ls /'"},
    {"tracepoint", "-a -e sched:sched_switch -e cpu-clock -- sleep 0.4"},
    {"dwarf",      "--call-graph dwarf -e cpu-clock -F 499 -- sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done'"},
    {"compressed", "-a -z -g -e cpu-clock -F 999 -- sleep 0.4"},
};

static const struct {
    const char *name;
    PdWriterOptions options;
} layouts[] = {
    {"file",          {.layout = PD_LAYOUT_FILE}},
    {"file.z1",       {.layout = PD_LAYOUT_FILE, .zstd_level = 1, .tally = true}},
    {"file.z19",      {.layout = PD_LAYOUT_FILE, .zstd_level = 19}},
    {"pipe",          {.layout = PD_LAYOUT_PIPE}},
    {"pipe.z3",       {.layout = PD_LAYOUT_PIPE, .zstd_level = 3}},
    {"directory",     {.layout = PD_LAYOUT_DIRECTORY, .n_files = 3}},
    {"directory.z3",  {.layout = PD_LAYOUT_DIRECTORY, .n_files = 3, .zstd_level = 3, .tally = true}},
};
/* clang-format on */

_printf_(1, 2) static int shell(const char *format, ...) {
    char command[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(command, sizeof(command), format, ap);
    va_end(ap);
    return system(command);
}

static bool has_perf(void) {
    return geteuid() == 0 && shell("perf --version >/dev/null 2>&1") == 0 &&
           shell("perf record -q -e cpu-clock -o /dev/null -- true >/dev/null 2>&1") == 0;
}

/* The file of a record in a folder: samples by CPU, everything else together. */
static uint32_t file_of(const PdWriterOptions *options, PdReader *reader, const PdRecord *record) {
    PdStamp stamp;

    if (options->layout != PD_LAYOUT_DIRECTORY || record->type != PD_RECORD_SAMPLE ||
        pd_events_stamp(pd_reader_events(reader), record, &stamp) < 0)
        return 0;
    return 1 + stamp.cpu % options->n_files;
}

static bool is_wanted(const PdWriterOptions *options, const PdRecord *record) {
    return options->layout != PD_LAYOUT_DIRECTORY || record->type != PD_RECORD_FINISHED_ROUND;
}

static int copy_front(PdReader *reader, PdWriter *w) {
    const PdEvents *events = pd_reader_events(reader);

    for (size_t i = 0; i < pd_events_count(events); i++) {
        int r = pd_writer_add_event(w, pd_events_at(events, i));

        if (r < 0)
            return r;
    }
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        Bytes body;
        int r;

        if (bit == PD_FEATURE_COMPRESSED || pd_reader_feature(reader, bit, &body) < 0)
            continue;
        r = pd_writer_set_feature(w, bit, body);
        if (r < 0)
            return r;
    }
    return pd_writer_begin(w);
}

/* `finish` false: leaves the file like a recorder that was killed. */
static int copy(const char *from, int fd, const PdWriterOptions *options, bool finish) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    PdRecord record;
    int r = pd_reader_open(from, NULL, &reader, NULL);

    if (r >= 0)
        r = pd_writer_new(fd, options, &w);
    if (r >= 0)
        r = copy_front(reader, w);
    if (r < 0)
        return r;
    for (unsigned n = 1; (r = pd_reader_next(reader, &record)) > 0; n++) {
        if (is_wanted(options, &record))
            r = pd_writer_write(w, file_of(options, reader, &record), record.data, record.size);
        if (r >= 0 && n % 500 == 0)
            r = pd_writer_flush(w);
        if (r < 0)
            return r;
    }
    if (r < 0 || pd_reader_damage(reader))
        return r < 0 ? r : -EBADMSG;
    return finish ? pd_writer_finish(w) : pd_writer_flush(w);
}

static int new_output(const char *path, PdLayout layout) {
    if (shell("rm -rf %s", path) != 0)
        return -1;
    if (layout != PD_LAYOUT_DIRECTORY)
        return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (mkdir(path, 0700) < 0)
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Writes the output of perf script for `name` in the folder to name.script. */
static int script(const char *name) {
    return shell("cd %s && perf script -i %s > %s.script 2> %s.errors", folder, name, name, name);
}

static bool same_script(const char *a, const char *b, bool sorted) {
    return shell("cd %s && %s %s.script > a && %s %s.script > b && cmp -s a b", folder,
                 sorted ? "sort" : "cat", a, sorted ? "sort" : "cat", b) == 0;
}

static bool record_shape(size_t i) {
    const char *name = shapes[i].name;

    if (shell("cd %s && test -e %s.script || perf record -q -o %s %s >/dev/null 2>&1", folder, name,
              name, shapes[i].arguments) != 0)
        return false;
    return script(name) == 0 && shell("test -s %s/%s.script", folder, name) == 0;
}

static void check_copies(size_t i) {
    char from[128], path[128], name[64];

    CHECK(record_shape(i));
    snprintf(from, sizeof(from), "%s/%s", folder, shapes[i].name);
    for (size_t k = 0; k < ARRAY_SIZE(layouts); k++) {
        bool directory = layouts[k].options.layout == PD_LAYOUT_DIRECTORY;
        _cleanup_close_ int fd = -1;

        snprintf(name, sizeof(name), "%s.%s", shapes[i].name, layouts[k].name);
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        printf("# %s\n", name);
        fd = new_output(path, layouts[k].options.layout);
        CHECK_OK(copy(from, fd, &layouts[k].options, true));
        CHECK_EQ(script(name), 0);
        CHECK(same_script(shapes[i].name, name, directory));
        CHECK_EQ(shell("cd %s && cmp -s %s.errors %s.errors", folder, shapes[i].name, name), 0);
    }
}

TEST(perf_reads_every_copy_of_every_recording_as_it_reads_the_original) {
    if (!has_perf())
        TEST_SKIP("perf and root are needed");
    for (size_t i = 0; i < ARRAY_SIZE(shapes) && !test_failed; i++)
        check_copies(i);
}

TEST(perf_finds_times_and_build_ids_in_compressed_files) {
    if (!has_perf())
        TEST_SKIP("perf and root are needed");
    CHECK(record_shape(0));
    CHECK_EQ(shell("cd %s && perf report --header-only -I -i chains.file.z1 2>/dev/null | "
                   "grep -q 'time of first sample'",
                   folder),
             0);
    CHECK_EQ(
        shell("cd %s && perf buildid-list -i chains.file.z1 2>/dev/null | grep -q kernel", folder),
        0);
}

/* Cuts the files of an unfinished copy at some point, recovers it and makes perf count the
 * samples. */
static void check_mended(const PdWriterOptions *options, unsigned tenths, uint64_t *total) {
    char from[128], path[128], file[160];
    bool directory = options->layout == PD_LAYOUT_DIRECTORY;
    _cleanup_close_ int fd = -1, cut = -1;
    PdRecovery did;
    struct stat st;

    snprintf(from, sizeof(from), "%s/chains", folder);
    snprintf(path, sizeof(path), "%s/mended", folder);
    fd = new_output(path, options->layout);
    CHECK_OK(copy(from, fd, options, false));
    snprintf(file, sizeof(file), "%s%s", path, directory ? "/data.1" : "");
    cut = open(file, O_RDWR | O_CLOEXEC);
    CHECK_OK(fstat(cut, &st));
    /* Records end at multiples of 8. */
    CHECK_OK(ftruncate(cut, (st.st_size * tenths / 10 - 3) | 1));
    CHECK_OK(pd_segment_recover(fd, options->layout, NULL, &did));
    printf("# %s, level %d, %u tenths: %llu samples, %s\n", directory ? "directory" : "file",
           options->zstd_level, tenths, (unsigned long long)did.samples, did.damage);
    CHECK(did.cut_bytes > 0 && did.damage[0] != '\0');
    CHECK_EQ(script("mended"), 0);
    CHECK_EQ(shell("cd %s && ! grep -v '^Warning\\|^assertion failed at util/namespaces\\|^$' "
                   "mended.errors",
                   folder),
             0);
    CHECK_EQ(shell("cd %s && perf report --stats -i mended 2>/dev/null > stats && "
                   "test $(awk '/SAMPLE events:/ {n = $3; exit} END {print n + 0}' stats) = %llu",
                   folder, (unsigned long long)did.samples),
             0);
    /* The result is not a prefix of the whole: the rest of the last round comes from some CPUs
     * only. Names may differ too, since a COMM may be after the cut. Nothing is left of a
     * compressed record that was cut. */
    CHECK_EQ(shell("cd %s && for f in chains mended; do perf script -F cpu,time,event,period -i $f "
                   "2>/dev/null | sort > $f.samples; done; "
                   "test $(wc -l <mended.samples) -ge %d && "
                   "! comm -13 chains.samples mended.samples | grep -q .",
                   folder, did.samples > 0),
             0);
    *total += did.samples;
}

TEST(perf_reads_a_recovered_file_up_to_the_cut) {
    PdWriterOptions folder_options = {.layout = PD_LAYOUT_DIRECTORY, .n_files = 2};
    uint64_t total = 0;

    if (!has_perf())
        TEST_SKIP("perf and root are needed");
    CHECK(record_shape(0));
    for (unsigned tenths = 5; tenths < 10 && !test_failed; tenths += 2)
        for (int level = 0; level < 4 && !test_failed; level += 3) {
            folder_options.zstd_level = level;
            check_mended(&(PdWriterOptions){.layout = PD_LAYOUT_FILE, .zstd_level = level}, tenths,
                         &total);
            check_mended(&folder_options, tenths, &total);
        }
    CHECK(test_failed || total > 0);
}

int main(int argc, char **argv) {
    int r;

    if (!mkdtemp(folder))
        return 1;
    r = test_main(argc, argv);
    (void)shell("rm -rf %s", folder);
    return r;
}
