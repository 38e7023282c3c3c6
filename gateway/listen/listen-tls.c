/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listen/listen-tls.h"

#include <errno.h>
#include <openssl/err.h>

/* TLS 1.2 at least, no compression, no renegotiation, and buffers only while they hold something:
 * connections that wait for their next request cost little. */

SSL_CTX *listen_tls_free(SSL_CTX *tls) {
    SSL_CTX_free(tls);
    return NULL;
}

int listen_tls_new(const char *certificate_file, const char *key_file, SSL_CTX **ret,
                   const char **ret_problem) {
    _cleanup_(listen_tls_freep) SSL_CTX *tls = SSL_CTX_new(TLS_server_method());

    if (!tls)
        return -ENOMEM;
    (void)SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(tls, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    *ret_problem = NULL;
    if (SSL_CTX_use_certificate_chain_file(tls, certificate_file) != 1)
        *ret_problem = "CertificateFile= of [Listen] is not a certificate in PEM that can be read.";
    else if (SSL_CTX_use_PrivateKey_file(tls, key_file, SSL_FILETYPE_PEM) != 1)
        *ret_problem = "KeyFile= of [Listen] is not a key in PEM that can be read and that is of "
                       "the certificate.";
    ERR_clear_error();
    if (*ret_problem)
        return -EINVAL;
    *ret = TAKE_PTR(tls);
    return 0;
}
