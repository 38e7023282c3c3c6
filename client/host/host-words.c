/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/host/host-words.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "client/frame/shell.h"
#include "util/text.h"

/*
 * The words of -H: the hosts, and the part of our command line that is for them. The remote shell
 * parses the line, so each word is quoted. The words of -H are recognised by the position of its
 * argument in argv, in every form (-H a, -qHa, --host=a).
 */

/* Returns where the argument of -H begins in a word, or NULL if it has none. */
static const char *host_words_argument_in(const OptionHosts *hosts, const char *word) {
    for (size_t i = 0; i < hosts->n_arguments; i++)
        if (hosts->arguments[i] >= word && hosts->arguments[i] <= word + strlen(word))
            return hosts->arguments[i];
    return NULL;
}

void host_quote_words(Buffer *out, const OptionHosts *hosts, int argc, char *const *argv) {
    for (int i = 1; i < argc; i++) {
        const char *at = host_words_argument_in(hosts, argv[i]);
        bool before = i + 1 < argc && host_words_argument_in(hosts, argv[i + 1]) == argv[i + 1];
        size_t n = strlen(argv[i]);

        if (at == argv[i])
            continue;
        if ((at || before) && argv[i][1] == '-')
            continue;
        /* A cluster ends at its H; a lone dash remains of a separate -H. */
        if (at)
            n = (size_t)(at - argv[i]) - 1;
        else if (before)
            n--;
        if ((at || before) && n <= 1)
            continue;
        text_putc(out, ' ');
        shell_put_word(out, argv[i], n);
    }
}

int host_worse(int a, int b) {
    if (a == HOST_STATUS_UNREACHABLE || b == HOST_STATUS_UNREACHABLE)
        return HOST_STATUS_UNREACHABLE;
    if (a == 0 || b == 0)
        return MAX(a, b);
    return MIN(a, b);
}

void host_leash(void) {
    struct pollfd p = {.fd = STDIN_FILENO};
    int flags = fcntl(STDIN_FILENO, F_GETFL);

    /* Only a pipe or a socket can report its end; others refuse this. */
    if (flags < 0 || fcntl(STDIN_FILENO, F_SETOWN, getpid()) < 0 ||
        fcntl(STDIN_FILENO, F_SETSIG, SIGTERM) < 0 ||
        fcntl(STDIN_FILENO, F_SETFL, flags | O_ASYNC) < 0)
        return;
    if (poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
        (void)raise(SIGTERM);
}
