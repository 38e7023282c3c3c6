/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "listen/listen-text.h"
#include "test.h"

/* Who may ask: where the listener is, which host a request names, and its token. */

static bool is_loopback(const char *text) {
    ListenAddress address;

    return listen_address_parse(text, &address) == 0 && address.is_loopback;
}

TEST(addresses_have_a_port) {
    ListenAddress address;

    CHECK_OK(listen_address_parse("192.0.2.7:6080", &address));
    CHECK_EQ(address.socket.ss_family, AF_INET);
    CHECK_EQ(ntohs(((struct sockaddr_in *)&address.socket)->sin_port), 6080);
    CHECK(!address.is_loopback);
    CHECK_OK(listen_address_parse("[2001:db8::1]:443", &address));
    CHECK_EQ(address.socket.ss_family, AF_INET6);
    CHECK_EQ(address.size, sizeof(struct sockaddr_in6));
    CHECK(!address.is_loopback);
}

TEST(text_that_is_no_address_is_refused) {
    static const char *const texts[] = {
        "",         "6080",  ":6080",     "127.0.0.1",   "127.0.0.1:",    "127.0.0.1:x",
        "::1:6080", "[::1]", "[::1]6080", "[::1",        "[127.0.0.1]:1", "example.com:80",
        "127.1:80", "[]:80", "[::1]:-1",  "1.2.3.4:80 ", " 1.2.3.4:80",
    };
    ListenAddress address;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK_EQ(listen_address_parse(texts[i], &address), -EINVAL);
    CHECK_EQ(listen_address_parse("127.0.0.1:0", &address), -ERANGE);
    CHECK_EQ(listen_address_parse("127.0.0.1:65536", &address), -ERANGE);
}

TEST(loopback_addresses_are_known) {
    CHECK(is_loopback("127.0.0.1:1"));
    CHECK(is_loopback("127.9.8.7:65535"));
    CHECK(is_loopback("localhost:6080"));
    CHECK(is_loopback("[::1]:6080"));
    CHECK(is_loopback("[::ffff:127.0.0.1]:6080"));
    CHECK(!is_loopback("0.0.0.0:6080"));
    CHECK(!is_loopback("[::]:6080"));
    CHECK(!is_loopback("128.0.0.1:6080"));
    CHECK(!is_loopback("[::ffff:10.0.0.1]:6080"));
}

TEST(host_of_a_page_from_elsewhere_is_not_local) {
    CHECK(listen_host_is_local("localhost"));
    CHECK(listen_host_is_local("LOCALHOST:6080"));
    CHECK(listen_host_is_local("127.0.0.1:6080"));
    CHECK(listen_host_is_local("[::1]"));
    CHECK(listen_host_is_local("[::1]:6080"));
    CHECK(!listen_host_is_local(""));
    CHECK(!listen_host_is_local("localhost.example.com"));
    CHECK(!listen_host_is_local("127.0.0.1.example.com:6080"));
    CHECK(!listen_host_is_local("10.0.0.1:6080"));
    CHECK(!listen_host_is_local("[::1]example.com"));
}

TEST(token_is_long_and_printable) {
    char token[LISTEN_TOKEN_MAX + 2];

    CHECK(listen_token_is_valid("0123456789abcdef"));
    CHECK(!listen_token_is_valid("0123456789abcde"));
    CHECK(!listen_token_is_valid("0123456789 abcdef"));
    CHECK(!listen_token_is_valid("0123456789abcdef\x80"));
    memset(token, 't', sizeof(token));
    token[LISTEN_TOKEN_MAX + 1] = '\0';
    CHECK(!listen_token_is_valid(token));
    token[LISTEN_TOKEN_MAX] = '\0';
    CHECK(listen_token_is_valid(token));
}

TEST(only_the_whole_token_matches) {
    static const char token[] = "0123456789abcdef";

    CHECK(listen_token_matches(token, "Bearer 0123456789abcdef"));
    CHECK(listen_token_matches(token, "bearer   0123456789abcdef "));
    CHECK(!listen_token_matches(token, NULL));
    CHECK(!listen_token_matches(token, ""));
    CHECK(!listen_token_matches(token, "Bearer"));
    CHECK(!listen_token_matches(token, "Bearer "));
    CHECK(!listen_token_matches(token, "Basic 0123456789abcdef"));
    CHECK(!listen_token_matches(token, "0123456789abcdef"));
    CHECK(!listen_token_matches(token, "Bearer 0123456789abcde"));
    CHECK(!listen_token_matches(token, "Bearer 0123456789abcdeF"));
    CHECK(!listen_token_matches(token, "Bearer 0123456789abcdef0"));
    /* The token, twice: it is compared with itself beyond its end. */
    CHECK(!listen_token_matches(token, "Bearer 0123456789abcdef0123456789abcdef"));
    CHECK(!listen_token_matches("", "Bearer "));
}

TEST_MAIN()
