/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "listen/listen-symbol.h"
#include "make-profile.h"
#include "test.h"
#include "util/text.h"

/* Names of the addresses of a profile. */

static MadeProfile make_kernel(void) {
    MadeProfile made = make_profile(UINT32_MAX);
    uint32_t kernel = make_mapping(&made, FRAME_KERNEL, "[kernel.kallsyms]");
    uint32_t shop = make_mapping(&made, FRAME_USER, "/usr/bin/shop");

    make_frame(&made, kernel, 0xffffffff81000200, FRAME_NAMED, "vfs_read", NULL);
    make_frame(&made, shop, 0x1100, FRAME_NAMED, "main", NULL);
    make_frame(&made, kernel, 0xffffffff81000010, FRAME_NAMED, "evil\nname", NULL);
    make_frame(&made, kernel, 0xffffffff81000300, FRAME_UNNAMED, "0xffffffff81000300", NULL);
    return made;
}

static int answer(const ListenSymbols *symbols, const char *text, char ret[256]) {
    _cleanup_(buffer_done) Buffer out = {};
    int r = listen_symbols_answer(symbols, made_bytes(text), &out);

    text_putc(&out, '\0');
    snprintf(ret, 256, "%s", (const char *)out.data);
    return r;
}

TEST(kernel_addresses_are_named) {
    MadeProfile made = make_kernel();
    ListenSymbols symbols = {};
    char text[256];

    CHECK_OK(listen_symbols_make(made.profile, made.names, &symbols));
    CHECK_EQ(symbols.n, 2);
    CHECK_OK(answer(&symbols, "0xffffffff81000200", text));
    CHECK_STREQ(text, "0xffffffff81000200 vfs_read\n");
    CHECK_OK(answer(&symbols, "0xffffffff81000010+0xffffffff81000200", text));
    CHECK_STREQ(text, "0xffffffff81000010 evil\\x0aname\n0xffffffff81000200 vfs_read\n");
    listen_symbols_done(&symbols);
    made_profile_done(&made);
}

TEST(user_offsets_and_unknown_addresses_are_left_out) {
    MadeProfile made = make_kernel();
    ListenSymbols symbols = {};
    char text[256];

    CHECK_OK(listen_symbols_make(made.profile, made.names, &symbols));
    CHECK_OK(answer(&symbols, "0x1100+0xffffffff81000300+0x0", text));
    CHECK_STREQ(text, "");
    listen_symbols_done(&symbols);
    made_profile_done(&made);
}

TEST(empty_table_answers_nothing) {
    ListenSymbols symbols = {};
    char text[256];

    CHECK_OK(answer(&symbols, "0xffffffff81000200", text));
    CHECK_STREQ(text, "");
    CHECK_EQ(answer(&symbols, "no address", text), -EINVAL);
}

TEST(number_of_addresses_is_bounded) {
    _cleanup_(buffer_done) Buffer text = {}, out = {};
    ListenSymbols symbols = {};

    for (int i = 0; i < LISTEN_SYMBOLS_ASKED_MAX; i++)
        text_puts(&text, "1+");
    CHECK_OK(listen_symbols_answer(&symbols, buffer_bytes(&text), &out));
    text_puts(&text, "1");
    CHECK_EQ(listen_symbols_answer(&symbols, buffer_bytes(&text), &out), -E2BIG);
}

TEST_MAIN()
