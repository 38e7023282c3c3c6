/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "store/disk/segment-name.h"
#include "test.h"
#include "util/macro.h"

/* Names of segments, and the numbers that are never given again. */

TEST(names_are_parsed_as_they_are_printed) {
    static const uint64_t numbers[] = {1, 42, 99999999, 100000000, 999999999999999};

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        for (unsigned state = 0; state < 3; state++)
            for (unsigned recovered = 0; recovered < 2; recovered++) {
                SegmentName name = segment_name_at(numbers[i], 1795177219ULL * 1000000000), read;
                char text[SEGMENT_NAME_MAX];
                NameKind kind;

                name.state = (SegmentState)state;
                name.recovered = recovered;
                segment_name_print(&name, text);
                CHECK_OK(segment_name_parse(text, &kind, &read));
                CHECK_EQ(kind, NAME_SEGMENT);
                CHECK_EQ(read.number, numbers[i]);
                CHECK_EQ(read.state, state);
                CHECK_EQ(read.recovered, recovered);
                CHECK_STREQ(read.stamp, "20261120T122019Z");
                CHECK_EQ(segment_name_real_ns(&read), 1795177219ULL * 1000000000);
            }
}

TEST(files_next_to_a_segment_are_recognised) {
    SegmentName name;
    NameKind kind;

    CHECK_OK(segment_name_parse("00000001-20260101T000000Z~.json", &kind, &name));
    CHECK_EQ(kind, NAME_MANIFEST);
    CHECK(name.recovered);
    CHECK_OK(segment_name_parse("00000001-20260101T000000Z.tracing", &kind, &name));
    CHECK_EQ(kind, NAME_TRACING);
    CHECK_OK(segment_name_parse(".x.tmp", &kind, &name));
    CHECK_EQ(kind, NAME_SCRATCH);
    CHECK_OK(segment_name_parse(".sequence", &kind, &name));
    CHECK_EQ(kind, NAME_OURS);
}

TEST(other_file_names_are_ignored) {
    static const char *const names[] = {
        "",
        "1-20260101T000000Z.perf.data",
        "0000001-20260101T000000Z.perf.data",
        "000000001-20260101T000000Z.perf.data",
        "1000000000000000-20260101T000000Z.perf.data",
        "00000001-20260101T000000.perf.data",
        "00000001-20260101 000000Z.perf.data",
        "00000001-2026010aT000000Z.perf.data",
        "00000001-20260101T000000Z.perf.data.open.old",
        "00000001-20260101T000000Z~~.perf.data",
        "00000001-20260101T000000Z.perf.data~",
        "00000001-20260101T000000Z",
        "+0000001-20260101T000000Z.perf.data",
        "00000001-20260101T000000Z.perf.data/../x",
        ".tmp",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        SegmentName name = {.number = 5};
        NameKind kind;

        if (segment_name_parse(names[i], &kind, &name) != -EBADMSG)
            printf("# '%s'\n", names[i]);
        CHECK_EQ(segment_name_parse(names[i], &kind, &name), -EBADMSG);
        CHECK_EQ(name.number, 5);
    }
}

TEST(a_name_is_made_for_any_time) {
    static const uint64_t times[] = {0, 1, UINT64_MAX, 253402300799ULL * 1000000000 % UINT64_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        SegmentName name = segment_name_at(1, times[i]), read;
        char text[SEGMENT_NAME_MAX];
        NameKind kind;

        segment_name_print(&name, text);
        CHECK_OK(segment_name_parse(text, &kind, &read));
    }
}

TEST(an_invalid_sequence_number_is_refused) {
    static const char *const texts[] = {"", "12", "-1\n", "12 \n", "x\n", "99999999999999999999\n"};
    char path[] = "/tmp/profd-name.XXXXXX", file[64];
    _cleanup_close_ int folder = -1;

    CHECK(mkdtemp(path));
    folder = open(path, O_RDONLY | O_DIRECTORY);
    CHECK(folder >= 0);
    CHECK_EQ(sequence_read(folder), 0);
    CHECK_OK(sequence_write(folder, 43));
    CHECK_EQ(sequence_read(folder), 43);
    snprintf(file, sizeof(file), "%s/.sequence", path);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        FILE *f = fopen(file, "w");

        CHECK(f);
        fputs(texts[i], f);
        fclose(f);
        CHECK_EQ(sequence_read(folder), 0);
    }
    unlink(file);
    rmdir(path);
}

TEST_MAIN()
