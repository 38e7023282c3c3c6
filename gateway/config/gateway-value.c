/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/gateway-value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "config/config-number.h"
#include "config/gateway-config.h"
#include "util/parse.h"
#include "util/text.h"

/*
 * Parses values into members. A parser stores its result last, so that an invalid value changes
 * nothing. Texts go into requests and labels later, so control characters and what is no UTF-8 are
 * refused here. An empty text is the default of keys that have none.
 */

static int gateway_store_text(const ConfigKey *key, const char *text, size_t n, void *base) {
    char *at = (char *)base + key->offset;

    if (n >= key->size)
        return -ERANGE;
    /* The rest too, because a reload compares whole members. */
    memset(at, 0, key->size);
    memcpy(at, text, n);
    return 0;
}

static bool gateway_text_is_clean(const char *text) {
    const uint8_t *p = (const uint8_t *)text;
    size_t left = strlen(text), n;

    for (; left > 0; p += n, left -= n) {
        uint32_t point;

        n = text_code_point(p, left, &point);
        if (n == 0 || point < 0x20 || (point >= 0x7f && point < 0xa0))
            return false;
    }
    return true;
}

int gateway_parse_text(const ConfigKey *key, const char *value, void *base) {
    size_t n = strlen(value);

    if (!gateway_text_is_clean(value))
        return -EINVAL;
    if (n >= 2 && value[0] == '"' && value[n - 1] == '"')
        return gateway_store_text(key, value + 1, n - 2, base);
    return gateway_store_text(key, value, n, base);
}

int gateway_parse_word(const ConfigKey *key, const char *value, void *base) {
    if (!gateway_text_is_clean(value) || strchr(value, ' '))
        return -EINVAL;
    return gateway_store_text(key, value, strlen(value), base);
}

int gateway_parse_name(const ConfigKey *key, const char *value, void *base) {
    return *value == '.' || strchr(value, '/') ? -EINVAL : gateway_parse_word(key, value, base);
}

int gateway_parse_path(const ConfigKey *key, const char *value, void *base) {
    if ((*value && *value != '/') || !gateway_text_is_clean(value))
        return -EINVAL;
    return gateway_store_text(key, value, strlen(value), base);
}

int gateway_parse_socket(const ConfigKey *key, const char *value, void *base) {
    if (strcmp(value, "none") == 0)
        value = "";
    if (!gateway_text_is_clean(value) || (*value != '/' && (strchr(value, '/') || *value == '.')))
        return -EINVAL;
    return gateway_store_text(key, value, strlen(value), base);
}

/* The number of ADDRESS:PORT without brackets, in `ret` of INET6_ADDRSTRLEN bytes. -EINVAL: there
 * is no port, or no such number. */
static int gateway_split_address(const char *text, char *ret, bool *ret_is_v6) {
    const char *colon = strrchr(text, ':');
    bool is_v6 = text[0] == '[';
    size_t n;
    uint64_t port;

    if (!colon || parse_u64(colon + 1, &port) < 0 || port == 0 || port > UINT16_MAX)
        return -EINVAL;
    if (is_v6 && (colon < text + 2 || colon[-1] != ']'))
        return -EINVAL;
    n = (size_t)(colon - text) - (is_v6 ? 2 : 0);
    if (n >= INET6_ADDRSTRLEN)
        return -EINVAL;
    memcpy(ret, text + (is_v6 ? 1 : 0), n);
    ret[n] = '\0';
    *ret_is_v6 = is_v6;
    return 0;
}

int gateway_parse_address(const ConfigKey *key, const char *value, void *base) {
    char number[INET6_ADDRSTRLEN];
    struct in6_addr address;
    bool is_v6;

    if (strcmp(value, "none") == 0)
        value = "";
    if (*value && (gateway_split_address(value, number, &is_v6) < 0 ||
                   inet_pton(is_v6 ? AF_INET6 : AF_INET, number, &address) != 1))
        return -EINVAL;
    return gateway_store_text(key, value, strlen(value), base);
}

bool gateway_address_is_loopback(const char *address) {
    char number[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    struct in_addr v4;
    bool is_v6;

    if (gateway_split_address(address, number, &is_v6) < 0)
        return false;
    if (is_v6)
        return inet_pton(AF_INET6, number, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    return inet_pton(AF_INET, number, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* What stands behind "//": a host, maybe a port and a path. A password in it would be shown. */
static bool gateway_url_rest_is_valid(const char *rest) {
    size_t host = strcspn(rest, "/");

    return host > 0 && rest[0] != ':' && !memchr(rest, '@', host) &&
           !strpbrk(rest, " #?\"<>\\^`{|}");
}

int gateway_parse_url(const ConfigKey *key, const char *value, void *base) {
    static const char *const schemes[] = {"http://", "https://"};
    bool is_valid = !*value || *value == '/';

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
        if (strncmp(value, schemes[i], strlen(schemes[i])) == 0)
            is_valid = gateway_url_rest_is_valid(value + strlen(schemes[i]));
    if (!is_valid || !gateway_text_is_clean(value))
        return -EINVAL;
    return gateway_store_text(key, value, strlen(value), base);
}

static int gateway_parse_one_of(const ConfigKey *key, const char *value, void *base,
                                const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], value) == 0)
            return gateway_store_text(key, value, strlen(value), base);
    return -EINVAL;
}

int gateway_parse_type(const ConfigKey *key, const char *value, void *base) {
    static const char *const types[] = {"", "pyroscope", "parca", "otlp", "s3", "file"};

    return gateway_parse_one_of(key, value, base, types, ARRAY_SIZE(types));
}

int gateway_parse_content(const ConfigKey *key, const char *value, void *base) {
    static const char *const contents[] = {"", "profiles", "recordings", "snapshots"};

    return gateway_parse_one_of(key, value, base, contents, ARRAY_SIZE(contents));
}

int gateway_parse_action(const ConfigKey *key, const char *value, void *base) {
    return relabel_action_from_name(value, (RelabelAction *)((char *)base + key->offset));
}

int gateway_parse_percent(const ConfigKey *key, const char *value, void *base) {
    uint64_t percent;
    int r = config_read_percent(value, &percent);

    return r < 0 ? r : config_store_number(key, percent, base);
}
