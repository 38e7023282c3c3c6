/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "keeper/keeper.h"
#include "keeper/request/keeper-client.h"
#include "keeper/request/keeper-request.h"
#include "keeper/rights/sandbox.h"
#include "util/file.h"

/*
 * A keeper with a recorder that only pretends, for test-keeper.py: `keeper-tool FOLDER` keeps, and
 * what the keeper starts from it, with --recorder=FD, does what FOLDER/mode says and notes each
 * thing that happens to it as a line in FOLDER/log. Modes: `record`; `fail N` ends with N before it
 * records; `crash` dies as soon as it records; `crash-late` dies when it is told to end; `hang`
 * never gets so far; `stay` makes no room for another; `probe` tries what it must not do; `seal`
 * hands over a file and a folder in the store; `images` asks for what the lines of FOLDER/images
 * say: `path PID PATH` or `mapped PID START END`, where the PID 0 stands for its own.
 * FOLDER/leave-ms and FOLDER/ask-ms say how long the keeper waits for one that stays or hangs.
 */

typedef struct Recorder {
    const char *folder;
    char mode[64];
    Keeper *keeper;
    int clock_error; /* of a look at the clock's state, before the sandbox */
} Recorder;

/* EFAULT means that the call is allowed. */
static int look_at_clock(void) {
    return syscall(SYS_clock_adjtime, CLOCK_REALTIME, NULL) < 0 ? errno : 0;
}

static _printf_(2, 3) void note(const Recorder *recorder, const char *format, ...) {
    char path[512], line[768];
    _cleanup_close_ int fd = -1;
    va_list ap;
    int n = snprintf(line, sizeof(line), "%d ", (int)getpid());

    va_start(ap, format);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, ap);
    va_end(ap);
    line[n++] = '\n';
    snprintf(path, sizeof(path), "%s/log", recorder->folder);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0)
        (void)file_write_all(fd, line, (size_t)n);
}

static KeeperEvent clock_event(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = PERF_ATTR_SIZE_VER5,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_type = PERF_SAMPLE_IP,
                                   .sample_period = 10000000};
    KeeperEvent event = {.attr_size = PERF_ATTR_SIZE_VER5,
                         .pid = -1,
                         .cpu = 0,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = KEEPER_NO_SLOT,
                         .ring_bytes = 65536};

    memcpy(event.attr, &attr, PERF_ATTR_SIZE_VER5);
    return event;
}

static void open_or_adopt(const Recorder *recorder) {
    KeeperEvent event = clock_event();
    KeeperStatus status = {};
    uint32_t slot = KEEPER_NO_SLOT;
    int fd = -1, r;

    (void)keeper_status(recorder->keeper, &status);
    note(recorder, "status events=%u restarts=%u upgraded=%d", status.n_events, status.restarts,
         status.upgraded);
    if (status.n_events > 0)
        r = keeper_next_event(recorder->keeper, &slot, &event, &fd);
    else
        r = keeper_open_event(recorder->keeper, &event, &slot, &fd);
    note(recorder, "event %d", r);
    closep(&fd);
}

static void probe(const Recorder *recorder) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};
    char *const arguments[] = {(char *)"/bin/true", NULL};
    struct {
        const char *name;
        long result;
    } rows[5];

    /* With these arguments none of them would succeed; without a filter the error would not be
     * EPERM. */
    errno = 0;
    rows[0].name = "ptrace";
    rows[0].result = ptrace(PTRACE_CONT, 0x7ffffff0, NULL, NULL) < 0 ? errno : 0;
    rows[1].name = "process_vm_readv";
    rows[1].result = syscall(SYS_process_vm_readv, 0x7ffffff0, NULL, 0, NULL, 0, 0) < 0 ? errno : 0;
    rows[2].name = "pidfd_getfd";
    rows[2].result = syscall(SYS_pidfd_getfd, -1, 0, 0) < 0 ? errno : 0;
    rows[3].name = "perf_event_open";
    rows[3].result = syscall(SYS_perf_event_open, &attr, 0x7ffffff0, -1, -1, 0) < 0 ? errno : 0;
    rows[4].name = "execve";
    rows[4].result = execve("/nowhere", arguments, NULL) < 0 ? errno : 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        note(recorder, "probe %s %s", rows[i].name,
             rows[i].result == EPERM ? "refused" : strerror((int)rows[i].result));
    note(recorder, "probe clock %s",
         look_at_clock() == recorder->clock_error ? "as outside" : "refused");
}

static int make_file(int folder, const char *name) {
    return openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
}

static void seal(const Recorder *recorder) {
    char path[512];
    _cleanup_close_ int store = -1, file = -1, folder = -1, part = -1, again = -1;

    snprintf(path, sizeof(path), "%s/store", recorder->folder);
    store = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    file = make_file(store, "file.perf.data");
    (void)mkdirat(store, "folder", 0700);
    folder = openat(store, "folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    part = make_file(folder, "data");
    note(recorder, "seal %d", keeper_seal(recorder->keeper, file, true));
    note(recorder, "seal %d", keeper_seal(recorder->keeper, part, false));
    note(recorder, "seal %d", keeper_seal(recorder->keeper, folder, false));
    again = openat(folder, "data", O_RDONLY | O_CLOEXEC);
    note(recorder, "read %d", again < 0 ? -errno : 0);
    note(recorder, "write %d", openat(folder, "data", O_WRONLY | O_CLOEXEC) < 0 ? -errno : 0);
    /* A recorder must still be able to do this in order to delete segments. */
    note(recorder, "rename %d", renameat(folder, "data", folder, "more") < 0 ? -errno : 0);
    note(recorder, "rename %d", renameat(folder, "more", folder, "data") < 0 ? -errno : 0);
}

static void ask_for_image(const Recorder *recorder, char *line) {
    char path[KEEPER_PATH_SIZE];
    uint64_t start, end;
    KeeperFileId id;
    uint32_t pid;
    int fd = -1, r = -EINVAL;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "path %" SCNu32 " %4095[^\n]", &pid, path) == 2)
        r = keeper_open_image(recorder->keeper, pid ? pid : (uint32_t)getpid(), path, &id, &fd);
    else if (sscanf(line, "mapped %" SCNu32 " %" SCNx64 " %" SCNx64, &pid, &start, &end) == 3)
        r = keeper_open_mapped(recorder->keeper, pid, start, end, &id, &fd);
    closep(&fd);
    note(recorder, "%d for %s", r, line);
}

static void ask_for_images(const Recorder *recorder) {
    char path[512], line[512];
    FILE *wanted;

    snprintf(path, sizeof(path), "%s/images", recorder->folder);
    wanted = fopen(path, "re");
    while (wanted && fgets(line, sizeof(line), wanted))
        ask_for_image(recorder, line);
    if (wanted)
        (void)fclose(wanted);
}

/* Runs until it is told to end, or the keeper is gone. */
static int record(const Recorder *recorder, int signals) {
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                           {.fd = keeper_fd(recorder->keeper), .events = POLLIN}};
    struct signalfd_siginfo info;

    for (;;) {
        if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
            return EXIT_FAILURE;
        if (fds[1].revents) {
            note(recorder, "gone");
            return 0;
        }
        if (read(signals, &info, sizeof(info)) != sizeof(info))
            continue;
        note(recorder, "signal %s", sigabbrev_np((int)info.ssi_signo));
        if (info.ssi_signo == SIGUSR1 && strcmp(recorder->mode, "stay") == 0)
            continue;
        if (strcmp(recorder->mode, "crash-late") == 0)
            (void)raise(SIGKILL);
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGUSR1)
            return 0;
    }
}

static int be_recorder(const char *folder, int socket) {
    Recorder recorder = {.folder = folder};
    char path[512];
    sigset_t set;
    int signals, r;

    snprintf(path, sizeof(path), "%s/mode", folder);
    if (file_read_text(path, recorder.mode, sizeof(recorder.mode)) < 0)
        return 99;
    note(&recorder, "begin %s", recorder.mode);
    if (strncmp(recorder.mode, "fail ", 5) == 0)
        return atoi(recorder.mode + 5);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_CLOEXEC);
    recorder.clock_error = look_at_clock();
    r = sandbox_recorder();
    if (r == 0)
        r = keeper_connect(socket, &recorder.keeper);
    if (r == 0 && strcmp(recorder.mode, "hang") == 0)
        r = record(&recorder, signals);
    if (r == 0)
        r = keeper_take_over(recorder.keeper);
    if (r < 0)
        return 98;
    note(&recorder, "took over");
    open_or_adopt(&recorder);
    if (strcmp(recorder.mode, "probe") == 0)
        probe(&recorder);
    if (strcmp(recorder.mode, "seal") == 0)
        seal(&recorder);
    if (strcmp(recorder.mode, "images") == 0)
        ask_for_images(&recorder);
    note(&recorder, "ready %d", keeper_ready(recorder.keeper));
    if (strcmp(recorder.mode, "crash") == 0)
        (void)raise(SIGKILL);
    r = record(&recorder, signals);
    keeper_disconnect(recorder.keeper);
    closep(&signals);
    return r;
}

static uint64_t patience_ms(const char *folder, const char *name) {
    char path[512], text[32];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return file_read_text(path, text, sizeof(text)) < 0 ? 0 : (uint64_t)atoi(text);
}

int main(int argc, char **argv) {
    static const char option[] = "--recorder=";
    char store[512];

    if (argc < 2)
        return 2;
    if (argc == 3 && strncmp(argv[2], option, strlen(option)) == 0)
        return be_recorder(argv[1], atoi(argv[2] + strlen(option)));
    snprintf(store, sizeof(store), "%s/store", argv[1]);
    return keeper_run(&(KeeperOptions){.argv = argv,
                                       .store = store,
                                       .leave_ms = patience_ms(argv[1], "leave-ms"),
                                       .ask_ms = patience_ms(argv[1], "ask-ms")});
}
