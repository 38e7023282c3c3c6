/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "listen/listen-private.h"
#include "util/file.h"

/*
 * The files of [Listen] that are renewed in place: the token and the certificate with its key. Both
 * are read into memory at once, before anything of a running listener changes, so that a file that
 * is half written never replaces one that works.
 */

static int listen_secret_load_token(const GatewayConfig *config, ListenSecret *secret,
                                    const char **ret_problem) {
    int r;

    if (!*config->listen_token_file)
        return 0;
    *ret_problem = "The file of TokenFile= in [Listen] cannot be read.";
    r = file_read_regular(config->listen_token_file, secret->token, sizeof(secret->token));
    if (r >= 0 && !listen_token_is_valid(secret->token)) {
        *ret_problem = "The token of TokenFile= in [Listen] has less than 16 characters, more than "
                       "1024, or a space.";
        return -EINVAL;
    }
    return r < 0 ? r : 0;
}

static int listen_secret_load_tls(const GatewayConfig *config, ListenSecret *secret,
                                  const char **ret_problem) {
    if (!*config->listen_certificate_file && !*config->listen_key_file)
        return 0;
    if (!*config->listen_certificate_file || !*config->listen_key_file) {
        *ret_problem = "CertificateFile= and KeyFile= of [Listen] belong together.";
        return -EINVAL;
    }
    return listen_tls_new(config->listen_certificate_file, config->listen_key_file, &secret->tls,
                          ret_problem);
}

int listen_secret_load(const GatewayConfig *config, ListenSecret **ret, const char **ret_problem) {
    _cleanup_(listen_secret_freep) ListenSecret *secret = calloc(1, sizeof(*secret));
    int r = 0;

    *ret_problem = "There is no memory for the listener.";
    if (!secret)
        return -ENOMEM;
    /* A Unix socket needs none of them. */
    if (*config->listen_address)
        r = listen_secret_load_token(config, secret, ret_problem);
    if (r == 0 && *config->listen_address)
        r = listen_secret_load_tls(config, secret, ret_problem);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(secret);
    return 0;
}

ListenSecret *listen_secret_free(ListenSecret *secret) {
    if (!secret)
        return NULL;
    listen_tls_free(secret->tls);
    explicit_bzero(secret->token, sizeof(secret->token));
    free(secret);
    return NULL;
}
