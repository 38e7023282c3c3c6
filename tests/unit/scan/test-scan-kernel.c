/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/kernel.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "keeper-stand-in.h"
#include "make-root.h"
#include "perfdata/record/record.h"
#include "test.h"

/* The maps of a kernel that a test made up, and of the one that runs. */

/* The records as lines, one a record. */
static char shown[1 << 16];

static int show(Bytes records) {
    size_t at = 0, n = 0;

    shown[0] = '\0';
    while (at + PD_RECORD_HEADER_SIZE <= records.size) {
        PdRecord record = pd_record_at(records.data + at, false);
        PdBody body;

        if (record.size < PD_RECORD_HEADER_SIZE || pd_record_parse(&record, NULL, &body) < 0)
            return -EBADMSG;
        at += record.size;
        if (record.type == PD_RECORD_KSYMBOL)
            n += (size_t)snprintf(shown + n, sizeof(shown) - n, "bpf %lx %x %d %.*s\n",
                                  (unsigned long)body.ksymbol.addr, body.ksymbol.length,
                                  body.ksymbol.ksym_type, (int)body.ksymbol.name.size,
                                  (const char *)body.ksymbol.name.data);
        else
            n += (size_t)snprintf(shown + n, sizeof(shown) - n, "%s %lx %lx %lx %.*s %s%02x%s\n",
                                  record.type == PD_RECORD_MMAP2 ? "map2" : "map",
                                  (unsigned long)body.mmap.start, (unsigned long)body.mmap.length,
                                  (unsigned long)body.mmap.pgoff, (int)body.mmap.filename.size,
                                  (const char *)body.mmap.filename.data,
                                  body.mmap.build_id_size ? "id " : "",
                                  body.mmap.build_id_size ? body.mmap.build_id[0] : 0,
                                  body.mmap.pid == UINT32_MAX && body.mmap.tid == 0 &&
                                          (record.misc & 7) == PD_MISC_KERNEL
                                      ? ""
                                      : " misplaced");
    }
    return at == records.size ? 0 : -EBADMSG;
}

static const uint8_t notes[] = {
    5, 0, 0, 0, 2, 0, 0, 0, 1, 1, 0, 0, 'L', 'i', 'n', 'u', 'x', 0, 0,    0, 9, 9,
    0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0,   0,   'G', 'N', 'U', 0, 0xab, 1, 2, 3,
};

static void put_kernel(void) {
    put("/proc/kallsyms", "ffffffff80000000 A fixed_percpu_data\n"
                          "ffffffff81000000 T _stext\n"
                          "ffffffff81000000 T _text\n"
                          "ffffffff81000040 t a_text\n"
                          "ffffffff82000b08 T _etext\n"
                          "ffffffff83000000 D _edata\n"
                          "ffffffffc0000000 t _text\t[evil]\n"
                          "ffffffffc0200000 t bpf_prog_02_b\t[bpf]\n"
                          "ffffffffc0100000 t bpf_prog_01_a\t[bpf]\n"
                          "ffffffffc0100040 t bpf_trampoline_7\t[bpf]\n"
                          "ffffffffc0400000 t ftrace_trampoline\t[__builtin__ftrace]\n");
    put_bytes("/sys/kernel/notes", notes, sizeof(notes));
    put("/proc/sys/kernel/osrelease", "6.1.0-test\n");
    put("/proc/modules", "snd_pcm 143360 2 snd,soundcore, Live 0xffffffffc0a00000 (E)\n"
                         "nf_tables 8192 0 - Live 0xffffffffc0a20000\n"
                         "hidden 4096 0 - Live 0x0000000000000000\n"
                         "nothing 4096\n"
                         "../../etc 4096 0 - Live 0xffffffffc0b00000\n"
                         "own 4096 0 - Loading 0xffffffffc0800000 (OE)\n");
    put("/lib/modules/6.1.0-test/modules.dep",
        "kernel/sound/core/snd-pcm.ko.xz: kernel/sound/core/snd.ko.xz\n"
        "kernel/net/nf_tables_x.ko:\n"
        "updates/dkms/own.ko:\n"
        "kernel/other/own.ko:\n");
    put_bytes("/sys/module/snd_pcm/notes/.note.gnu.build-id", notes + 24, sizeof(notes) - 24);
}

#define TEXT "map2 ffffffff81000000 1000b08 ffffffff81000000 [kernel.kallsyms]_text id ab\n"
#define MODULES                                                                                    \
    "map ffffffffc0800000 1000 0 [own] 00\n"                                                       \
    "map2 ffffffffc0a00000 20000 0 /lib/modules/6.1.0-test/kernel/sound/core/snd-pcm.ko.xz id "    \
    "ab\n"                                                                                         \
    "map ffffffffc0a20000 2000 0 [nf_tables] 00\n"
#define IMAGES                                                                                     \
    "bpf ffffffffc0100000 40 1 bpf_prog_01_a\n"                                                    \
    "bpf ffffffffc0100040 1000 1 bpf_trampoline_7\n"                                               \
    "bpf ffffffffc0200000 10000 1 bpf_prog_02_b\n"

TEST(text_modules_and_images_become_records) {
    Keeper keeper = {.root = root};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};

    begin_root();
    put_kernel();
    CHECK_OK(kernel_reader_new(root, &keeper, &reader));
    CHECK_OK(kernel_reader_read(reader, &records));
    CHECK_OK(show(buffer_bytes(&records)));
    CHECK_STREQ(shown, TEXT MODULES IMAGES);
    end_root();
}

TEST(symbols_are_read_once_and_modules_again) {
    Keeper keeper = {.root = root};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};

    begin_root();
    put_kernel();
    CHECK_OK(kernel_reader_new(root, &keeper, &reader));
    CHECK_OK(kernel_reader_read(reader, &records));
    put("/proc/modules", "late 4096 0 - Live 0xffffffffc0900000\n");
    put("/proc/kallsyms", "");
    buffer_clear(&records);
    CHECK_OK(kernel_reader_read(reader, &records));
    CHECK_OK(show(buffer_bytes(&records)));
    CHECK_STREQ(shown, TEXT "map ffffffffc0900000 1000 0 [late] 00\n" IMAGES);
    CHECK_EQ(atomic_load(&keeper.n_opened), 3U);
    end_root();
}

TEST(symbols_that_could_not_be_read_are_read_the_next_time) {
    Keeper keeper = {.root = root, .kallsyms_fails = ETIMEDOUT};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};

    begin_root();
    put_kernel();
    CHECK_OK(kernel_reader_new(root, &keeper, &reader));
    CHECK_EQ(kernel_reader_read(reader, &records), -ETIMEDOUT);
    CHECK_OK(show(buffer_bytes(&records)));
    CHECK_STREQ(shown, MODULES);
    keeper.kallsyms_fails = 0;
    buffer_clear(&records);
    CHECK_OK(kernel_reader_read(reader, &records));
    CHECK_OK(show(buffer_bytes(&records)));
    CHECK_STREQ(shown, TEXT MODULES IMAGES);
    end_root();
}

TEST(a_kernel_without_text_is_named_after_its_first_function) {
    Keeper keeper = {.root = root};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};

    begin_root();
    put("/proc/kallsyms", "ffff800080000000 d _text\n"
                          "ffff800080010000 T _stext\n"
                          "ffff800081000000 D _etext\n");
    CHECK_OK(kernel_reader_new(root, &keeper, &reader));
    CHECK_OK(kernel_reader_read(reader, &records));
    CHECK_OK(show(buffer_bytes(&records)));
    CHECK_STREQ(shown, "map ffff800080010000 ff0000 ffff800080010000 [kernel.kallsyms]_stext 00\n");
    end_root();
}

TEST(hidden_addresses_are_reported_and_visible_ones_kept) {
    Keeper keeper = {.root = root};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};

    begin_root();
    put("/proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T _etext\n"
                          "0000000000000000 t bpf_prog_1\t[bpf]\n");
    put("/proc/modules", "late 4096 0 - Live 0xffffffffc0900000\n");
    CHECK_OK(kernel_reader_new(root, &keeper, &reader));
    CHECK_EQ(kernel_reader_read(reader, &records), -EACCES);
    CHECK_OK(show(buffer_bytes(&records)));
    CHECK_STREQ(shown, "map ffffffffc0900000 1000 0 [late] 00\n");
    end_root();
}

TEST(a_kernel_without_modules_is_no_failure) {
    Keeper keeper = {.root = root};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};

    begin_root();
    put("/proc/kallsyms", "ffffffff81000000 T _text\nffffffff81001000 T _etext\n");
    CHECK_OK(kernel_reader_new(root, &keeper, &reader));
    CHECK_OK(kernel_reader_read(reader, &records));
    end_root();
}

TEST(malformed_lines_of_kallsyms_are_skipped) {
    Keeper keeper = {.root = root};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    static char text[8192];

    begin_root();
    memset(text, 'n', sizeof(text));
    memcpy(text,
           "ffffffff81000000 T _text\nffffffff81001000 T _etext\n\n \nx\n"
           "fffffffffffffffff T _text\n-1 T _text\nffffffff81000000 T\n"
           "ffffffff81000000 T \nffffffffc0000000 t bpf_prog_",
           159);
    memcpy(text + sizeof(text) - 8, "\t[bpf]\n", 8);
    put("/proc/kallsyms", text);
    CHECK_OK(kernel_reader_new(root, &keeper, &reader));
    CHECK_OK(kernel_reader_read(reader, &records));
    CHECK_OK(show(buffer_bytes(&records)));
    CHECK_STREQ(shown, "map ffffffff81000000 1000 ffffffff81000000 [kernel.kallsyms]_text 00\n");
    end_root();
}

/* "[0xSTART(0xLENGTH) @ 0xPGOFF]" of perf's first map. */
static bool ask_perf(uint64_t *start, uint64_t *length, uint64_t *pgoff, char name[128]) {
    char command[512], line[4096];
    bool found = false;
    FILE *f;

    snprintf(command, sizeof(command),
             "cd %s && HOME=%s && export HOME && perf record -q -N -B -e cpu-clock -o p.data true "
             "2>/dev/null >&2 && perf script -i p.data --show-mmap-events 2>/dev/null",
             root, root);
    f = popen(command, "r");
    while (f && !found && fgets(line, sizeof(line), f)) {
        char *at = strstr(line, "PERF_RECORD_MMAP -1/0: [");

        found =
            at &&
            sscanf(at, "PERF_RECORD_MMAP -1/0: [%" SCNx64 "(%" SCNx64 ") @ %" SCNx64 "]: x %127s",
                   start, length, pgoff, name) == 4;
    }
    if (f)
        pclose(f);
    return found;
}

TEST(the_running_kernel_is_described_as_by_perf) {
    Keeper keeper = {.root = ""};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    uint64_t start, length, pgoff;
    char name[128];
    PdRecord record;
    PdBody body;
    bool found;

    begin_root();
    found = ask_perf(&start, &length, &pgoff, name);
    end_root();
    if (!found)
        TEST_SKIP("perf does not record here");
    CHECK_OK(kernel_reader_new("", &keeper, &reader));
    CHECK_OK(kernel_reader_read(reader, &records));
    record = pd_record_at(records.data, false);
    CHECK_OK(pd_record_parse(&record, NULL, &body));
    CHECK_EQ(body.mmap.start, start);
    CHECK_EQ(body.mmap.length, length);
    CHECK_EQ(body.mmap.pgoff, pgoff);
    CHECK(bytes_equal_str(body.mmap.filename, name));
}

/* "return 0" as a socket filter by the name of test_scan; -1 where we may not. */
static int load_program(void) {
    static const struct bpf_insn program[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
        .insn_cnt = ARRAY_SIZE(program),
        .insns = (uintptr_t)program,
        .license = (uintptr_t) "GPL",
        .prog_name = "test_scan",
    };

    return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

TEST(compiled_bpf_program_has_its_address) {
    _cleanup_close_ int program = load_program();
    Keeper keeper = {.root = ""};
    _cleanup_(kernel_reader_freep) KernelReader *reader = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    unsigned long address = 0;
    char line[512], wanted[64] = "?";
    FILE *f;

    if (program < 0)
        TEST_SKIP("no right to load BPF programs");
    f = fopen("/proc/kallsyms", "re");
    while (f && address == 0 && fgets(line, sizeof(line), f))
        if (strstr(line, "_test_scan\t[bpf]"))
            (void)sscanf(line, "%lx", &address);
    if (f)
        fclose(f);
    if (address == 0)
        TEST_SKIP("kallsyms does not show what BPF compiled");
    CHECK_OK(kernel_reader_new("", &keeper, &reader));
    CHECK_OK(kernel_reader_read(reader, &records));
    CHECK_OK(show(buffer_bytes(&records)));
    snprintf(wanted, sizeof(wanted), "bpf %lx ", address);
    CHECK(strstr(shown, wanted) != NULL);
    CHECK(strstr(strstr(shown, wanted), "_test_scan\n") != NULL);
}

TEST_MAIN()
