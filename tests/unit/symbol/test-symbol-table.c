/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/table/name-build.h"
#include "symbol/text/demangle.h"
#include "test.h"
#include "util/macro.h"

/* Which symbol names which address. */

typedef struct Row {
    uint64_t address, size;
    NameBinding binding;
    const char *name;
} Row;

static void make(NameOrder order, const Row *rows, size_t n, Buffer *ret) {
    _cleanup_(name_build_done) NameBuild build;

    name_build_init(&build, order);
    for (size_t i = 0; i < n; i++)
        if (name_build_add(&build, &(NameSymbol){.address = rows[i].address,
                                                 .size = rows[i].size,
                                                 .binding = rows[i].binding,
                                                 .name = {.data = (const uint8_t *)rows[i].name,
                                                          .size = strlen(rows[i].name)}}) < 0)
            abort();
    if (name_build_image(&build, ret) < 0)
        abort();
}

static const char *find(const Buffer *image, uint64_t address) {
    NameTable table;
    NameFound found;

    if (name_table_open(buffer_bytes(image), &table) < 0)
        return "malformed";
    return name_table_find(&table, address, &found) ? (const char *)found.name.data : "";
}

TEST(symbol_holds_from_its_start_to_its_end) {
    static const Row rows[] = {{0x2000, 0x10, NAME_GLOBAL, "b"}, {0x1000, 0x10, NAME_GLOBAL, "a"}};
    _cleanup_(buffer_done) Buffer image = {};

    make(NAME_BY_START, rows, ARRAY_SIZE(rows), &image);
    CHECK_STREQ(find(&image, 0xfff), "");
    CHECK_STREQ(find(&image, 0x1000), "a");
    CHECK_STREQ(find(&image, 0x100f), "a");
    CHECK_STREQ(find(&image, 0x1010), "");
    CHECK_STREQ(find(&image, 0x2000), "b");
    CHECK_STREQ(find(&image, UINT64_MAX), "");
}

TEST(symbol_inside_another_hides_only_its_own_part) {
    static const Row rows[] = {{0x1000, 0x100, NAME_GLOBAL, "outer"},
                               {0x1040, 0x10, NAME_GLOBAL, "inner"},
                               {0x10f0, 0x20, NAME_GLOBAL, "across"}};
    _cleanup_(buffer_done) Buffer image = {};

    make(NAME_BY_START, rows, ARRAY_SIZE(rows), &image);
    CHECK_STREQ(find(&image, 0x103f), "outer");
    CHECK_STREQ(find(&image, 0x1040), "inner");
    CHECK_STREQ(find(&image, 0x1050), "outer");
    CHECK_STREQ(find(&image, 0x10f0), "across");
    CHECK_STREQ(find(&image, 0x110f), "across");
    CHECK_STREQ(find(&image, 0x1110), "");
}

TEST(symbol_without_size_holds_up_to_the_next) {
    static const Row rows[] = {{0x1000, 0, NAME_GLOBAL, "label"},
                               {0x1800, 4, NAME_GLOBAL, "next"},
                               {0x1900, 0, NAME_GLOBAL, "last"}};
    _cleanup_(buffer_done) Buffer image = {};

    make(NAME_BY_START, rows, ARRAY_SIZE(rows), &image);
    CHECK_STREQ(find(&image, 0x17ff), "label");
    CHECK_STREQ(find(&image, 0x1804), "");
    CHECK_STREQ(find(&image, 0x2fff), "last");
    CHECK_STREQ(find(&image, 0x3000), "");
}

TEST(of_names_for_one_address_the_choice_is_that_of_perf) {
    static const struct {
        Row rows[2];
        const char *chosen;
    } cases[] = {
        {{{0x1000, 0, NAME_GLOBAL, "none"}, {0x1000, 8, NAME_LOCAL, "size"}}, "size"},
        {{{0x1000, 8, NAME_WEAK, "weak"}, {0x1000, 8, NAME_LOCAL, "not_weak"}}, "not_weak"},
        {{{0x1000, 8, NAME_LOCAL, "local_name"}, {0x1000, 8, NAME_GLOBAL, "global"}}, "global"},
        {{{0x1000, 8, NAME_GLOBAL, "__reads"}, {0x1000, 8, NAME_GLOBAL, "read"}}, "read"},
        {{{0x1000, 8, NAME_GLOBAL, "read"}, {0x1000, 8, NAME_GLOBAL, "read64"}}, "read64"},
        {{{0x1000, 8, NAME_GLOBAL, "SyS_a"}, {0x1000, 8, NAME_GLOBAL, "sys_a"}}, "sys_a"},
        {{{0x1000, 8, NAME_GLOBAL, "first"}, {0x1000, 8, NAME_GLOBAL, "other"}}, "first"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(buffer_done) Buffer image = {};

        make(NAME_BY_START, cases[i].rows, 2, &image);
        CHECK_STREQ(find(&image, 0x1004), cases[i].chosen);
    }
}

TEST(code_that_was_generated_last_holds_the_address) {
    static const Row rows[] = {{0x1000, 0x100, NAME_GLOBAL, "old"},
                               {0x1040, 0x20, NAME_GLOBAL, "middle"},
                               {0x1030, 0x18, NAME_GLOBAL, "new"},
                               {0x5000, 0, NAME_GLOBAL, "nothing"}};
    _cleanup_(buffer_done) Buffer image = {};

    make(NAME_BY_TIME, rows, ARRAY_SIZE(rows), &image);
    CHECK_STREQ(find(&image, 0x1000), "old");
    CHECK_STREQ(find(&image, 0x1047), "new");
    CHECK_STREQ(find(&image, 0x1048), "middle");
    CHECK_STREQ(find(&image, 0x1060), "old");
    CHECK_STREQ(find(&image, 0x5000), "");
}

TEST(rows_agree_with_a_search_of_all_symbols) {
    enum { N = 400, SPAN = 4096 };
    static char names[N][8];
    Row rows[N];
    uint32_t state = 12345;

    for (unsigned order = 0; order < 2; order++) {
        _cleanup_(buffer_done) Buffer image = {};

        for (size_t i = 0; i < N; i++) {
            snprintf(names[i], sizeof(names[i]), "f%03zu", i);
            state = state * 1664525 + 1013904223;
            rows[i] = (Row){.address = state >> 20,
                            .size = 1 + (state >> 8) % 64,
                            .binding = NAME_GLOBAL,
                            .name = names[i]};
        }
        make(order == 0 ? NAME_BY_START : NAME_BY_TIME, rows, N, &image);
        for (uint64_t at = 0; at < SPAN; at++) {
            const Row *best = NULL;

            for (size_t i = 0; i < N; i++) {
                bool holds = at - rows[i].address < rows[i].size;

                /* Of one start, the first one stays. */
                if (order == 0)
                    for (size_t j = 0; holds && j < i; j++)
                        holds = rows[j].address != rows[i].address;
                if (holds && (!best || order == 1 || rows[i].address > best->address))
                    best = &rows[i];
            }
            CHECK_STREQ(find(&image, at), best ? best->name : "");
        }
    }
}

TEST(image_that_is_cut_or_changed_is_refused) {
    static const Row rows[] = {{0x1000, 0x10, NAME_GLOBAL, "a"}};
    _cleanup_(buffer_done) Buffer image = {};
    NameTable table;

    make(NAME_BY_START, rows, ARRAY_SIZE(rows), &image);
    for (size_t n = 0; n < image.size; n++)
        CHECK_EQ(name_table_open((Bytes){.data = image.data, .size = n}, &table), -EBADMSG);
    CHECK_OK(name_table_open(buffer_bytes(&image), &table));
    image.data[image.size - 1] = 'x';
    CHECK_EQ(name_table_open(buffer_bytes(&image), &table), -EBADMSG);
}

static const char *demangled(const char *name) {
    static char text[512];
    _cleanup_(buffer_done) Buffer out = {};

    demangle((Bytes){.data = (const uint8_t *)name, .size = strlen(name)}, &out);
    snprintf(text, sizeof(text), "%.*s", (int)out.size, (const char *)out.data);
    return text;
}

TEST(names_of_several_languages_are_demangled) {
    CHECK_STREQ(demangled("_ZN5outer3BoxIlE4spinEl"), "outer::Box<long>::spin");
    CHECK_STREQ(demangled("_ZN1b4deep10W$LT$T$GT$4spin17h2187b74fcfb20d7bE"),
                "b::deep::W<T>::spin");
    CHECK_STREQ(demangled("_RNvMNtCsj6gjteTz5uu_1b4deepINtB2_1WhE4spinB4_"),
                "<b::deep::W<u8>>::spin");
    CHECK_STREQ(demangled("_D3std5stdio7writelnFZv"), "std.stdio.writeln()");
    CHECK_STREQ(demangled("_D4shop5Order5priceMFiAyaZd"),
                "shop.Order.price(int, immutable(char)[])");
    CHECK_STREQ(demangled("_Dzzz"), "_Dzzz");
    CHECK_STREQ(demangled("_start"), "_start");
    CHECK_STREQ(demangled("_Zzzz"), "_Zzzz");
    CHECK_STREQ(demangled("main"), "main");
}

TEST(name_that_stands_for_gigabytes_stays_as_it_is) {
    static const char digits[] = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char bomb[512] = "_Z1fI1aIccE";

    for (size_t i = 0; i < 33; i++)
        snprintf(bomb + strlen(bomb), sizeof(bomb) - strlen(bomb), "S0_IS%c_S%c_E", digits[i],
                 digits[i]);
    strcat(bomb, "Evv");
    CHECK_STREQ(demangled(bomb), bomb);
}

TEST_MAIN()
