/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Short texts of the configuration and of requests: addresses, hosts, tokens. Nothing here does
 * I/O. */

#include <stdbool.h>
#include <sys/socket.h>

enum {
    LISTEN_TOKEN_MIN = 16, /* bytes; a shorter token can be guessed */
    LISTEN_TOKEN_MAX = 1024,
};

typedef struct ListenAddress {
    struct sockaddr_storage socket;
    socklen_t size;
    bool is_loopback; /* only this host reaches it */
} ListenAddress;

/* "127.0.0.1:6080", "[::1]:6080", "localhost:6080"; other names are not looked up. */
int listen_address_parse(const char *text, ListenAddress *ret);

/* Whether the Host of a request, with or without a port, is a name of the loopback. A page that a
 * browser has from elsewhere bears another one, even where its name leads to 127.0.0.1. */
bool listen_host_is_local(const char *host);

/* Long enough, and of printable characters without spaces. */
bool listen_token_is_valid(const char *token);
/* Whether an Authorization header (NULL: none) is "Bearer TOKEN". The time that this takes does not
 * depend on where the two differ. */
bool listen_token_matches(const char *token, const char *header);
