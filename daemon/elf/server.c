/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "elf/server.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "elf/elf-request.h"
#include "elf/sealed-file.h"
#include "reduce/code-map.h"
#include "reduce/reduce.h"
#include "unwind/compile/unwind-compile.h"
#include "util/clock.h"
#include "util/fd-message.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * A table has the function for each kind of request. A file is read with bounded pread() calls into
 * our own memory and never mapped, since it may shrink meanwhile. Each file has a limit of CPU
 * time: a timer that counts our user and system time ends the process with SIGPROF, which nobody
 * else would send, so the caller knows that the file is the cause. Time spent waiting for the file
 * system does not count.
 */

static int server_find_build_id(int fd, ElfReply *reply, int *ret_fd _unused_) {
    BuildId id;
    int r = elf_build_id_of_fd(fd, &id);

    if (r < 0)
        return r;
    reply->build_id_size = (uint32_t)id.size;
    memcpy(reply->build_id, id.bytes, id.size);
    return 0;
}

static void server_forget_build_id(ElfReply *reply) {
    memset(reply->build_id, 0, sizeof(reply->build_id));
    reply->build_id_size = 0;
}

static int server_answer_file(const Buffer *content, ElfReply *reply, int *ret_fd) {
    /* The system has no memory; the file is not to blame. */
    if (sealed_file_new(buffer_bytes(content), ret_fd) < 0)
        return -EAGAIN;
    reply->file_size = content->size;
    return 0;
}

static int server_find_table(int fd, ElfReply *reply, int *ret_fd) {
    _cleanup_(buffer_done) Buffer image = {};
    int r = unwind_compile_fd(fd, &image);

    if (r < 0)
        return r;
    return image.size > ELF_TABLE_BYTES_MAX ? -E2BIG : server_answer_file(&image, reply, ret_fd);
}

static int server_find_symbols(int fd, ElfReply *reply, int *ret_fd) {
    ReduceSource source = {.read = file_read_at, .userdata = &fd};
    _cleanup_(buffer_done) Buffer reduced = {};
    int r = server_find_build_id(fd, reply, ret_fd);

    if (r == 0)
        r = reduce_elf(&source, (Bytes){.data = reply->build_id, .size = reply->build_id_size},
                       ELF_SYMBOLS_BYTES_MAX, &reduced);
    if (r == 0)
        r = server_answer_file(&reduced, reply, ret_fd);
    if (r < 0)
        server_forget_build_id(reply);
    return r;
}

static int server_find_code_map(int fd, ElfReply *reply, int *ret_fd) {
    ReduceSource source = {.read = file_read_at, .userdata = &fd};
    _cleanup_(buffer_done) Buffer map = {};
    int r = code_map_read(&source, ELF_CODE_MAP_BYTES_MAX, &map);

    return r < 0 ? r : server_answer_file(&map, reply, ret_fd);
}

/* Each puts the result into the reply, or into a file that is sent with it. */
static int (*const finders[])(int fd, ElfReply *reply, int *ret_fd) = {
    [ELF_BUILD_ID] = server_find_build_id,
    [ELF_UNWIND] = server_find_table,
    [ELF_SYMBOLS] = server_find_symbols,
    [ELF_CODE_MAP] = server_find_code_map,
};

static_assert(ARRAY_SIZE(finders) == ELF_WANTS, "a finder for each");

static void server_set_limit(time_t seconds) {
    struct itimerval limit = {.it_value = {.tv_sec = seconds}};

    (void)setitimer(ITIMER_PROF, &limit, NULL);
}

static int server_answer(int socket, const ElfRequest *request, int fd) {
    ElfReply reply = {.protocol = ELF_PROTOCOL, .serial = request->serial};
    _cleanup_close_ int found = -1;

    server_set_limit(ELF_LIMIT_S);
    reply.result = finders[request->want](fd, &reply, &found);
    server_set_limit(0);
    reply.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    return message_send(socket, &reply, sizeof(reply), found, 0);
}

int elf_serve(int socket) {
    for (;;) {
        uint8_t bytes[sizeof(ElfRequest)];
        _cleanup_close_ int fd = -1;
        ElfRequest request;
        int r = message_receive(socket, bytes, sizeof(bytes), &fd);

        if (r >= 0)
            r = elf_request_check(bytes, (size_t)r, fd >= 0, &request);
        if (r == 0)
            r = server_answer(socket, &request, fd);
        /* Another version asks while an installation is replaced: no file is to blame. */
        if (r < 0)
            return r == -EPIPE || r == -EPROTO ? 0 : r;
    }
}
