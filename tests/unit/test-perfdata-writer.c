/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdata/encode.h"
#include "test.h"

/* What a writer puts where, in every layout and both byte orders. */

enum { SAMPLE_SIZE = 40 };

static const uint64_t ids[] = {11, 12};

static int new_file(void) {
    return memfd_create("writer", MFD_CLOEXEC);
}

/* All bytes of a descriptor, NUL-free of interest: the caller frees. */
static Bytes slurp(int fd) {
    struct stat st;
    uint8_t *p;

    if (fstat(fd, &st) < 0 || !(p = malloc((size_t)st.st_size + 1)) ||
        pread(fd, p, (size_t)st.st_size, 0) != st.st_size)
        abort();
    return (Bytes){.data = p, .size = (size_t)st.st_size};
}

static int add_event(PdWriter *w, uint32_t attr_size_field) {
    PdEvent event = {.attr = {.type = PD_TYPE_SOFTWARE,
                              .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID |
                                             PD_SAMPLE_TIME,
                              .sample_period = 1000,
                              .flags = PD_ATTR_SAMPLE_ID_ALL},
                     .ids = (uint64_t *)ids,
                     .n_ids = ARRAY_SIZE(ids),
                     .name = (char *)"cpu-clock:u",
                     .name_given = true};

    if (attr_size_field > 112)
        event.attr.aux_sample_size = 1;
    return pd_writer_add_event(w, &event);
}

static void put_sample(Buffer *b, uint64_t time, bool swap) {
    buffer_u32(b, PD_RECORD_SAMPLE, swap);
    buffer_u16(b, PD_MISC_USER, swap);
    buffer_u16(b, SAMPLE_SIZE, swap);
    buffer_u64(b, ids[0], swap);
    buffer_u64(b, 0x401000, swap);
    buffer_u32(b, 7, swap);
    buffer_u32(b, 8, swap);
    buffer_u64(b, time, swap);
}

static Bytes text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static void check_plain_file(bool swap) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_close_ int fd = new_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .swap = swap};
    _cleanup_free_ uint8_t *owned = NULL;
    const uint8_t *p;
    Bytes all;

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(add_event(w, 0));
    CHECK_OK(pd_writer_set_feature(w, PD_FEATURE_HOSTNAME, text("first")));
    CHECK_OK(pd_writer_set_feature(w, PD_FEATURE_HOSTNAME, text("second")));
    CHECK_OK(pd_writer_set_feature(w, 200, text("x")));
    CHECK_OK(pd_writer_begin(w));
    put_sample(&records, 1, swap);
    put_sample(&records, 2, swap);
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_EQ(pd_writer_offset(w), (uint64_t)104 + 16 + 80 + 80);
    CHECK_OK(pd_writer_finish(w));

    all = slurp(fd);
    p = owned = (uint8_t *)all.data;
    CHECK_EQ(load_u64(p, swap), (uint64_t)PD_MAGIC_2);
    CHECK_EQ(load_u64(p + 8, swap), (uint64_t)104);
    CHECK_EQ(load_u64(p + 16, swap), (uint64_t)64 + 16);
    CHECK_EQ(load_u64(p + 24, swap), (uint64_t)104 + 16);
    CHECK_EQ(load_u64(p + 32, swap), (uint64_t)80);
    CHECK_EQ(load_u64(p + 40, swap), (uint64_t)200);
    CHECK_EQ(load_u64(p + 48, swap), (uint64_t)80);
    CHECK_EQ(load_u64(p + 72, swap), 1ULL << PD_FEATURE_HOSTNAME);
    CHECK_EQ(load_u64(p + 96, swap), 1ULL << (200 - 192));
    CHECK_EQ(load_u64(p + 104, swap), ids[0]);
    CHECK_EQ(load_u32(p + 120 + 4, swap), 64U);
    CHECK_EQ(load_u64(p + 120 + 64, swap), (uint64_t)104);
    CHECK_EQ(load_u64(p + 120 + 72, swap), (uint64_t)16);
    CHECK(memcmp(p + 200, records.data, records.size) == 0);
    CHECK_EQ(load_u64(p + 280, swap), (uint64_t)280 + 32);
    CHECK_EQ(load_u64(p + 288, swap), (uint64_t)6);
    CHECK_EQ(load_u64(p + 296, swap), (uint64_t)280 + 38);
    CHECK(memcmp(p + 312, "secondx", 7) == 0);
    CHECK_EQ(all.size, (size_t)319);
}

TEST(a_file_has_header_ids_attrs_data_and_features_in_their_places) {
    check_plain_file(false);
}

TEST(a_file_of_the_other_byte_order_has_every_number_swapped) {
    check_plain_file(true);
}

TEST(an_unfinished_file_says_so_and_has_its_events) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_close_ int fd = new_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    _cleanup_free_ uint8_t *p = NULL;
    Bytes all;

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(add_event(w, 0));
    CHECK_OK(pd_writer_set_feature(w, PD_FEATURE_HOSTNAME, text("h")));
    CHECK_OK(pd_writer_begin(w));
    put_sample(&records, 1, false);
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_OK(pd_writer_flush(w));
    all = slurp(fd);
    p = (uint8_t *)all.data;
    CHECK_EQ(load_u64(p + 32, false), (uint64_t)80);
    CHECK_EQ(load_u64(p + 48, false), (uint64_t)0);
    CHECK_EQ(load_u64(p + 72, false), (uint64_t)0);
    CHECK_EQ(all.size, (size_t)240);
}

TEST_MAIN()
