/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "transport/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/file.h"

/*
 * Reads what the gateway shows to an engine: a bearer token or the user and password of basic
 * authentication, from a file or from a credential that systemd passed. A secret lives on the stack
 * for as long as a request is prepared, and is overwritten after that. A control character would
 * end the header that it becomes part of, so none is accepted.
 */

/* systemd shows credentials of the running service here, also to a test that root starts. */
#define SERVICE_CREDENTIALS "/run/credentials/profd-gateway.service"

static int secret_path(const SendConfig *config, char *to, size_t size) {
    const char *folder = getenv("CREDENTIALS_DIRECTORY") ?: SERVICE_CREDENTIALS;
    int n;

    if (config->token_file[0])
        n = snprintf(to, size, "%s", config->token_file);
    else if (config->password_file[0])
        n = snprintf(to, size, "%s", config->password_file);
    else
        n = snprintf(to, size, "%s/%s", folder, config->credential);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static bool secret_is_clean(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

int secret_read(const SendConfig *config, Secret *ret) {
    char path[GATEWAY_TEXT_MAX * 2];
    int n;

    *ret = (Secret){};
    if (!config->token_file[0] && !config->password_file[0] && !config->credential[0])
        return 0;
    n = secret_path(config, path, sizeof(path));
    if (n == 0)
        n = file_read_regular(path, ret->text, sizeof(ret->text));
    if (n > 0 && ret->text[n - 1] == '\r')
        ret->text[--n] = '\0';
    if (n == 0 || (n > 0 && (strlen(ret->text) != (size_t)n || !secret_is_clean(ret->text))))
        n = -EINVAL;
    if (n < 0) {
        secret_done(ret);
        return n;
    }
    /* A bearer token has no colon. */
    ret->is_basic =
        config->password_file[0] || (!config->token_file[0] && strchr(ret->text, ':') != NULL);
    return 0;
}

void secret_done(Secret *secret) {
    explicit_bzero(secret, sizeof(*secret));
}
