/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listen/listen-text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "util/macro.h"
#include "util/parse.h"

/*
 * Parses the texts that decide who may ask the gateway: where it listens, which host a request
 * names, and the token that it brings.
 */

enum { HOST_MAX = 64 };

static bool listen_text_is_loopback_v4(const struct in_addr *address) {
    return ntohl(address->s_addr) >> 24 == IN_LOOPBACKNET;
}

static bool listen_text_is_loopback_v6(const struct in6_addr *address) {
    struct in_addr mapped;

    if (!IN6_IS_ADDR_V4MAPPED(address))
        return IN6_IS_ADDR_LOOPBACK(address);
    memcpy(&mapped, &address->s6_addr[12], sizeof(mapped));
    return listen_text_is_loopback_v4(&mapped);
}

static int listen_text_parse_host(const char *host, uint16_t port, ListenAddress *ret) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    ListenAddress address = {};

    if (inet_pton(AF_INET, strcasecmp(host, "localhost") == 0 ? "127.0.0.1" : host, &v4.sin_addr) ==
        1) {
        memcpy(&address.socket, &v4, sizeof(v4));
        address.size = sizeof(v4);
        address.is_loopback = listen_text_is_loopback_v4(&v4.sin_addr);
    } else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        memcpy(&address.socket, &v6, sizeof(v6));
        address.size = sizeof(v6);
        address.is_loopback = listen_text_is_loopback_v6(&v6.sin6_addr);
    } else
        return -EINVAL;
    *ret = address;
    return 0;
}

/* Copies the host of HOST:PORT or [HOST]:PORT without its brackets; *ret_port is behind the colon,
 * or NULL if there is none. */
static int listen_text_split(const char *text, char ret_host[HOST_MAX], const char **ret_port) {
    const char *close = *text == '[' ? strchr(text, ']') : NULL;
    const char *begin = close ? text + 1 : text, *colon = close ? close + 1 : strrchr(text, ':');
    size_t n = close ? (size_t)(close - begin) : colon ? (size_t)(colon - begin) : strlen(text);

    if ((*text == '[' && !close) || (close && *colon && *colon != ':'))
        return -EINVAL;
    if (n >= HOST_MAX || (!close && memchr(begin, ':', n)))
        return -EINVAL;
    memcpy(ret_host, begin, n);
    ret_host[n] = '\0';
    *ret_port = colon && *colon ? colon + 1 : NULL;
    return 0;
}

int listen_address_parse(const char *text, ListenAddress *ret) {
    char host[HOST_MAX];
    const char *port;
    uint64_t number;
    int r = listen_text_split(text, host, &port);

    if (r == 0)
        r = port ? parse_u64(port, &number) : -EINVAL;
    if (r < 0)
        return r;
    if (number < 1 || number > UINT16_MAX)
        return -ERANGE;
    /* Only an address in brackets may have colons, and only one with colons has brackets. */
    if ((*text == '[') != !!strchr(host, ':'))
        return -EINVAL;
    return listen_text_parse_host(host, (uint16_t)number, ret);
}

bool listen_host_is_local(const char *host) {
    ListenAddress address;
    char name[HOST_MAX];
    const char *port;

    if (listen_text_split(host, name, &port) < 0)
        return false;
    return listen_text_parse_host(name, 0, &address) == 0 && address.is_loopback;
}

bool listen_token_is_valid(const char *token) {
    size_t n = strlen(token);

    for (size_t i = 0; i < n; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return false;
    return n >= LISTEN_TOKEN_MIN && n <= LISTEN_TOKEN_MAX;
}

/* Looks at each byte of the token that was sent, whatever the first ones are. */
static bool listen_text_equal(const char *token, size_t n, const char *sent, size_t n_sent) {
    volatile unsigned char differs = n != n_sent;

    for (size_t i = 0; i < n_sent; i++)
        differs |= (unsigned char)(sent[i] ^ token[i % n]);
    return differs == 0;
}

bool listen_token_matches(const char *token, const char *header) {
    static const char scheme[] = "bearer ";
    size_t n = strlen(token);

    if (n == 0 || !header || strncasecmp(header, scheme, sizeof(scheme) - 1) != 0)
        return false;
    header += sizeof(scheme) - 1;
    header += strspn(header, " ");
    return listen_text_equal(token, n, header, strcspn(header, " "));
}
