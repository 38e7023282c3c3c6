/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>

/*
 * Where perf finds symbols of stripped files: on this host, or at a debuginfod server. Each server
 * is tried with a connection from a child process, since resolving an address may take too long.
 */

enum { SERVERS_MAX = 4, HOST_MAX = 256, TRY_S = 4 };

static bool doctor_debuginfo_folder_holds_something(const Doctor *d, const char *folder) {
    char path[PATH_MAX];
    DIR *dir = doctor_path(d, folder, path, sizeof(path)) < 0 ? NULL : opendir(path);
    bool found = false;

    for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
        found = entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    if (dir)
        (void)closedir(dir);
    return found;
}

static bool doctor_debuginfo_has_kernel_symbols(const Doctor *d) {
    struct utsname host;
    char path[256];

    if (uname(&host) < 0)
        return false;
    (void)snprintf(path, sizeof(path), "/usr/lib/debug/boot/vmlinux-%s", host.release);
    if (doctor_exists(d, path))
        return true;
    (void)snprintf(path, sizeof(path), "/usr/lib/debug/lib/modules/%s/vmlinux", host.release);
    return doctor_exists(d, path);
}

typedef struct Server {
    char host[HOST_MAX], port[8];
    pid_t pid;
} Server;

/* Parses "https://host:port/path", up to a space. */
static bool doctor_debuginfo_parse_server(const char *url, Server *ret) {
    const char *at = strstr(url, "://");
    bool plain = strncmp(url, "http:", 5) == 0;
    size_t n;

    if (!at || (!plain && strncmp(url, "https:", 6) != 0))
        return false;
    at += 3;
    n = strcspn(at, ":/ ");
    if (n == 0 || n >= sizeof(ret->host))
        return false;
    *ret = (Server){};
    memcpy(ret->host, at, n);
    at += n;
    n = *at == ':' ? strspn(at + 1, "0123456789") : 0;
    if (n >= sizeof(ret->port))
        return false;
    (void)snprintf(ret->port, sizeof(ret->port), "%.*s", n > 0 ? (int)n : 3,
                   n > 0   ? at + 1
                   : plain ? "80"
                           : "443");
    return true;
}

__attribute__((noreturn)) static void try_server(const Server *server) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;

    (void)alarm(TRY_S);
    if (getaddrinfo(server->host, server->port, &hints, &list) != 0)
        _exit(1);
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
            _exit(0);
        closep(&fd);
    }
    _exit(1);
}

/* The number of servers that answer; -1: it cannot be determined here. */
static int doctor_debuginfo_count_answering(const char *urls, unsigned *ret_n) {
    Server servers[SERVERS_MAX];
    unsigned n = 0;
    int answering = 0;

    *ret_n = 0;
    if (getenv("http_proxy") || getenv("https_proxy") || getenv("HTTPS_PROXY") ||
        getenv("all_proxy") || getenv("ALL_PROXY"))
        return -1;
    for (const char *at = urls; *at && n < SERVERS_MAX; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (!doctor_debuginfo_parse_server(at, &servers[n]))
            continue;
        servers[n].pid = fork();
        if (servers[n].pid == 0)
            try_server(&servers[n]);
        n += servers[n].pid > 0;
    }
    for (unsigned i = 0; i < n; i++) {
        int status = 0;

        while (waitpid(servers[i].pid, &status, 0) < 0 && errno == EINTR)
            ;
        answering += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    *ret_n = n;
    return answering;
}

void doctor_debuginfo(Doctor *d) {
    const char *urls = d->root[0] ? NULL : getenv("DEBUGINFOD_URLS");
    bool server = (urls && *urls) || doctor_debuginfo_folder_holds_something(d, "/etc/debuginfod");
    bool local = doctor_debuginfo_folder_holds_something(d, "/usr/lib/debug/.build-id");
    unsigned n = 0;

    if (urls && *urls && doctor_debuginfo_count_answering(urls, &n) == 0) {
        doctor_say(d, HEALTH_WARN,
                   n > 0 ? "no server of DEBUGINFOD_URLS can be reached%s"
                         : "DEBUGINFOD_URLS names no server%s",
                   local ? "; there is debug information in /usr/lib/debug" : "");
        doctor_mend(d, "let this host reach it, or install packages of debug symbols");
    } else if (server || local)
        doctor_say(d, HEALTH_OK, "debug information comes from %s%s%s; %s",
                   local ? "/usr/lib/debug" : "", server && local ? " and " : "",
                   server ? "a debuginfod server" : "",
                   doctor_debuginfo_has_kernel_symbols(d) ? "the kernel's is there too"
                                                          : "the kernel has symbols only");
    else {
        doctor_say(d, HEALTH_WARN,
                   "no debug information is available: stripped programs have addresses instead of "
                   "functions, and no source lines");
        doctor_mend(d,
                    "set DEBUGINFOD_URLS to your distribution's debuginfod server, or install its "
                    "packages of debug symbols");
    }
}
