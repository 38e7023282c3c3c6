/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The certificate of the listener. */

#include <openssl/ssl.h>

#include "util/macro.h"

/* PEM files: a certificate with its chain, and its key. -EINVAL with a sentence in *ret_problem,
 * which is static. */
int listen_tls_new(const char *certificate_file, const char *key_file, SSL_CTX **ret,
                   const char **ret_problem);
/* Accepts and returns NULL. */
SSL_CTX *listen_tls_free(SSL_CTX *tls);
DEFINE_CLEANUP(SSL_CTX *, listen_tls_free);
