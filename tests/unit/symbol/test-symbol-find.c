/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-program.h"
#include "symbol/table/kept-table.h"
#include "test.h"
#include "util/clock.h"

/* Programs of many kinds are compiled here; where their functions are is what nm and readelf say of
 * the file before it was stripped. */

static const char source_c[] =
    "#include <stdlib.h>\n"
    "__attribute__((noinline)) int alpha(int n) { return n * atoi(\"3\"); }\n"
    "__attribute__((noinline)) static int beta(int n) { return n ^ alpha(n); }\n"
    "int main(int argc, char **argv) { return beta(argc); }\n";

static const SymbolOptions local = {.local_files = true};

static bool compile_c(const char *file, const char *flags) {
    made_write("source.c", source_c);
    return made_run("rm -f %s && gcc -O1 -g -Wl,--build-id %s -o %s source.c", file, flags, file);
}

/* The name, or why there is none. */
static const char *look_up_bare(const FrameMapping *mapping, uint64_t address,
                                const SymbolOptions *options, FrameName *ret) {
    const char *text = made_look_up(mapping, address, options, ret);

    if ((ret->naming == FRAME_REPLACED) != (strstr(text, "[replaced]") != NULL))
        return "a text that disagrees";
    return ret->naming == FRAME_NAMED      ? text
           : ret->naming == FRAME_REPLACED ? "replaced"
                                           : "no file";
}

TEST(functions_of_programs_of_all_kinds_are_named) {
    static const char *const flags[] = {"-fPIE -pie", "-no-pie", "-static", "-static-pie",
                                        "-shared -fPIC"};

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        FrameMapping mapping;
        uint64_t alpha, beta;
        FrameName name;

        printf("# %s\n", flags[i]);
        CHECK(compile_c("program", flags[i]));
        mapping = made_mapping("program");
        CHECK(mapping.build_id_size > 0);
        alpha = made_offset("program", "alpha");
        beta = made_offset("program", "beta");
        CHECK(alpha != UINT64_MAX && beta != UINT64_MAX);
        CHECK_STREQ(made_look_up(&mapping, alpha, &local, &name), "alpha");
        CHECK_EQ(name.naming, FRAME_NAMED);
        CHECK_EQ(name.start, alpha);
        CHECK_STREQ(made_look_up(&mapping, alpha + 3, &local, &name), "alpha");
        CHECK_EQ(name.start, alpha);
        CHECK_STREQ(made_look_up(&mapping, beta + 1, &local, &name), "beta");
    }
}

TEST(caller_is_looked_up_where_its_call_is) {
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    FrameMapping mapping;
    uint32_t at, after;
    uint64_t beta;

    CHECK(compile_c("program", ""));
    mapping = made_mapping("program");
    beta = made_offset("program", "beta");
    at = made_frame(&made, &mapping, beta, false);
    after = made_frame(&made, &mapping, beta, true); /* the call ends the function before */
    CHECK_OK(made_resolve(&made, &local));
    CHECK_STREQ(made_name(&made, at), "beta");
    CHECK(strcmp(made_name(&made, after), "beta") != 0);
}

TEST(file_that_was_replaced_is_not_used) {
    char expected[128];
    FrameMapping mapping;
    uint64_t alpha;
    FrameName name;

    CHECK(compile_c("replaced", ""));
    mapping = made_mapping("replaced");
    alpha = made_offset("replaced", "alpha");
    CHECK(compile_c("replaced", "-O2"));
    snprintf(expected, sizeof(expected), "replaced+0x%" PRIx64 " [replaced]", alpha);
    CHECK_STREQ(made_look_up(&mapping, alpha, &local, &name), expected);
    CHECK_EQ(name.naming, FRAME_REPLACED);
    CHECK(unlink(made_path("replaced")) == 0);
    snprintf(expected, sizeof(expected), "replaced+0x%" PRIx64, alpha);
    CHECK_STREQ(made_look_up(&mapping, alpha, &local, &name), expected);
    CHECK_EQ(name.naming, FRAME_NO_FILE);
}

TEST(files_of_this_host_are_left_alone_on_request) {
    FrameMapping mapping;
    uint64_t alpha;
    FrameName name;

    CHECK(compile_c("program", ""));
    mapping = made_mapping("program");
    alpha = made_offset("program", "alpha");
    CHECK(strstr(made_look_up(&mapping, alpha, &(SymbolOptions){}, &name), "program+0x"));
    CHECK_EQ(name.naming, FRAME_NO_FILE);
}

TEST(file_without_a_build_id_is_known_by_its_inode) {
    FrameMapping mapping, other;
    uint64_t alpha;
    FrameName name;

    CHECK(compile_c("bare", "-Wl,--build-id=none"));
    mapping = made_mapping("bare");
    CHECK_EQ(mapping.build_id_size, 0);
    alpha = made_offset("bare", "alpha");
    CHECK_STREQ(look_up_bare(&mapping, alpha, &local, &name), "no file"); /* an unknown device */
    made_identify("bare", &mapping);
    if (mapping.generation != 0) /* the file system has generations */
        CHECK_STREQ(look_up_bare(&mapping, alpha, &local, &name), "alpha");
    other = mapping;
    other.inode = 0;
    CHECK_STREQ(look_up_bare(&other, alpha, &local, &name), "no file");
    other = mapping;
    other.minor++;
    CHECK_STREQ(look_up_bare(&other, alpha, &local, &name), "no file");
    if (mapping.generation != 0) {
        other = mapping;
        other.generation++;
        CHECK_STREQ(look_up_bare(&other, alpha, &local, &name), "replaced");
    }
    CHECK(made_run("cp bare copy && mv copy bare"));
    CHECK_STREQ(look_up_bare(&mapping, alpha, &local, &name), "replaced");
}

static uint64_t written_ns_of(const char *file) {
    char path[PATH_MAX];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/%s", made_in(), file);
    if (stat(path, &st) < 0)
        abort();
    return (uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND + (uint64_t)st.st_mtim.tv_nsec;
}

TEST(file_without_a_build_id_that_was_written_after_a_sample_in_it_names_nothing) {
    FrameMapping mapping;
    uint64_t alpha;
    FrameName name;

    CHECK(compile_c("bare", "-Wl,--build-id=none"));
    mapping = made_mapping("bare");
    made_identify("bare", &mapping);
    if (mapping.generation == 0)
        TEST_SKIP("the file system has no generations");
    alpha = made_offset("bare", "alpha");
    mapping.sampled_ns = written_ns_of("bare");
    CHECK_STREQ(look_up_bare(&mapping, alpha, &local, &name), "alpha");
    mapping.sampled_ns--;
    CHECK_STREQ(look_up_bare(&mapping, alpha, &local, &name), "no file");
}

/* Whether a file of unknown generation is named in a recording that began `began_s` and ended
 * `ended_s` from now, and was written at `written_s`; 0: not known when. */
static const char *look_up_changed(const FrameMapping *mapping, uint64_t alpha, bool real_known,
                                   int64_t began_s, int64_t ended_s, int64_t written_s) {
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    uint32_t frame = made_frame(&made, mapping, alpha, false);
    uint64_t now = clock_ns(CLOCK_BOOTTIME), booted = clock_ns(CLOCK_REALTIME) - now;
    SymbolOptions options = {.local_files = true, .local_processes = true};

    made.profile.first_ns = now + (uint64_t)(began_s * (int64_t)NS_PER_SECOND);
    made.profile.last_ns = now + (uint64_t)(ended_s * (int64_t)NS_PER_SECOND);
    made.profile.real_known = real_known;
    made.profile.real_offset = real_known ? booted : 0;
    if (written_s != 0)
        options.written_ns = booted + now + (uint64_t)(written_s * (int64_t)NS_PER_SECOND);
    if (made_resolve(&made, &options) < 0)
        return "an error";
    return made.names->names[frame].naming == FRAME_NAMED     ? "named"
           : made.names->names[frame].naming == FRAME_NO_FILE ? "no file"
                                                              : "replaced";
}

TEST(file_of_unknown_generation_is_known_if_it_has_not_changed) {
    FrameMapping mapping;
    uint64_t alpha;

    CHECK(compile_c("early", "-Wl,--build-id=none"));
    mapping = made_mapping("early");
    made_identify("early", &mapping);
    alpha = made_offset("early", "alpha");
    mapping.generation = 0;
    CHECK_STREQ(look_up_changed(&mapping, alpha, true, 10, 20, 0), "named");
    CHECK_STREQ(look_up_changed(&mapping, alpha, true, -600, 20, 0), "no file");
    CHECK_STREQ(look_up_changed(&mapping, alpha, true, -600, -590, 0), "replaced");
    /* Without a wall clock it must be shown that the recording is of this boot. */
    CHECK_STREQ(look_up_changed(&mapping, alpha, false, 10, 20, 0), "no file");
    CHECK_STREQ(look_up_changed(&mapping, alpha, false, 10, 20, 21), "named");
    CHECK_STREQ(look_up_changed(&mapping, alpha, false, 10, 20, 5), "no file");
    /* The two clocks are one second and eight seconds apart. */
    CHECK_STREQ(look_up_changed(&mapping, alpha, false, 10, 20, 19), "named");
    CHECK_STREQ(look_up_changed(&mapping, alpha, false, 8, 20, 12), "no file");
    CHECK_STREQ(look_up_changed(&mapping, alpha, false, 10, 20, 60), "no file");
    CHECK_STREQ(look_up_changed(&mapping, alpha, false, -600, 20, 21), "no file");
}

TEST(separate_debug_file_names_a_stripped_program) {
    FrameMapping mapping;
    uint64_t alpha, beta;
    FrameName name;

    CHECK(compile_c("program", ""));
    mapping = made_mapping("program");
    alpha = made_offset("program", "alpha");
    beta = made_offset("program", "beta");
    CHECK(made_run("objcopy --only-keep-debug program program.debug && strip program"));
    CHECK(strstr(made_look_up(&mapping, beta, &local, &name), "program+0x"));
    CHECK_EQ(name.naming, FRAME_UNNAMED);
    CHECK(made_run("objcopy --add-gnu-debuglink=program.debug program"));
    CHECK_STREQ(made_look_up(&mapping, beta, &local, &name), "beta");
    CHECK(made_run("mkdir -p .debug && mv program.debug .debug/"));
    CHECK_STREQ(made_look_up(&mapping, alpha, &local, &name), "alpha");
    CHECK_EQ(name.start, alpha);
    /* A debug file of another program has another build id. */
    CHECK(compile_c("other", "-O2"));
    CHECK(made_run("objcopy --only-keep-debug other .debug/program.debug"));
    CHECK(strstr(made_look_up(&mapping, beta, &local, &name), "program+0x"));
}

TEST(debug_file_of_a_program_without_build_id_has_the_checksum) {
    FrameMapping mapping;
    uint64_t beta;
    FrameName name;

    CHECK(compile_c("bare", "-Wl,--build-id=none"));
    beta = made_offset("bare", "beta");
    CHECK(made_run("objcopy --only-keep-debug bare bare.debug && strip bare && "
                   "objcopy --add-gnu-debuglink=bare.debug bare"));
    mapping = made_mapping("bare");
    made_identify("bare", &mapping);
    CHECK_STREQ(made_look_up(&mapping, beta, &local, &name), "beta");
    CHECK(made_run("echo >>bare.debug"));
    CHECK(strstr(made_look_up(&mapping, beta, &local, &name), "bare+0x"));
}

TEST(cache_of_perf_names_a_program_that_is_gone) {
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    FrameMapping mapping;
    uint64_t beta;
    FrameName name;

    if (!made_has("perf"))
        TEST_SKIP("perf is not installed");
    CHECK(compile_c("program", ""));
    mapping = made_mapping("program");
    beta = made_offset("program", "beta");
    CHECK(made_run("perf --buildid-dir %s buildid-cache --add program && rm program", folder));
    CHECK_STREQ(made_look_up(&mapping, beta, &options, &name), "beta");
    CHECK_EQ(name.start, beta);
}

TEST(exported_functions_name_a_stripped_library) {
    FrameMapping mapping;
    uint64_t alpha;
    FrameName name;

    CHECK(compile_c("library.so", "-shared -fPIC"));
    mapping = made_mapping("library.so");
    alpha = made_offset("library.so", "alpha");
    CHECK(made_run("strip library.so"));
    CHECK_STREQ(made_look_up(&mapping, alpha + 1, &local, &name), "alpha");
}

TEST(compressed_symbols_name_what_is_not_exported) {
    FrameMapping mapping;
    uint64_t alpha, beta;
    FrameName name;

    if (!made_has("xz"))
        TEST_SKIP("xz is not installed");
    CHECK(compile_c("library.so", "-shared -fPIC"));
    mapping = made_mapping("library.so");
    alpha = made_offset("library.so", "alpha");
    beta = made_offset("library.so", "beta");
    CHECK(made_run("objcopy -S --remove-section .gdb_index --remove-section .comment "
                   "--keep-symbol=beta library.so mini && xz -kf mini && "
                   "objcopy --only-keep-debug library.so whole && "
                   "objcopy -S --keep-symbol=beta whole mini && xz -kf mini && strip library.so && "
                   "objcopy --add-section .gnu_debugdata=mini.xz library.so"));
    CHECK_STREQ(made_look_up(&mapping, beta, &local, &name), "beta");
    CHECK_STREQ(made_look_up(&mapping, alpha, &local, &name), "alpha");
}

TEST(stub_for_a_function_of_another_file_is_named_after_it) {
    FrameMapping mapping;
    uint64_t plt;
    FrameName name;
    char command[512];

    CHECK(compile_c("program", "-fPIE -pie -Wl,-z,lazy"));
    mapping = made_mapping("program");
    snprintf(command, sizeof(command),
             "cd %s && readelf -SW program | sed -n 's/.* \\.plt *PROGBITS *[0-9a-f]* //p'",
             made_in());
    plt = made_number(command);
    CHECK(plt != UINT64_MAX);
    snprintf(command, sizeof(command),
             "cd %s && readelf -rW program | sed -n '/rela.plt/,$p' | grep -n JUMP | "
             "grep atoi\\\\\\|strtol | cut -d: -f1",
             made_in());
    CHECK(made_number(command) == 3 || made_number(command) == 2); /* behind two lines of heading */
    CHECK(strstr(made_look_up(&mapping, plt + 16, &local, &name), "@plt"));
    CHECK_EQ(name.start, plt + 16);
}

TEST(names_of_cxx_are_demangled) {
    FrameMapping mapping;
    uint64_t spin;
    FrameName name;

    made_write("source.cc", "namespace outer { template <class T> struct Box { __attribute__"
                            "((noinline)) T spin(T n) { return n * 3; } }; }\n"
                            "int main(int argc, char **argv) { return outer::Box<long>()"
                            ".spin(argc); }\n");
    CHECK(made_run("g++ -O1 -Wl,--build-id -o program source.cc"));
    mapping = made_mapping("program");
    spin = made_offset("program", "_ZN5outer3BoxIlE4spinEl");
    CHECK(spin != UINT64_MAX);
    CHECK_STREQ(made_look_up(&mapping, spin, &local, &name), "outer::Box<long>::spin");
}

TEST(names_of_rust_are_demangled) {
    static const char *const manglings[] = {"", "-C symbol-mangling-version=v0"};
    FrameMapping mapping;
    FrameName name;

    if (!made_has("rustc"))
        TEST_SKIP("rustc is not installed");
    made_write("source.rs", "mod deep { #[inline(never)] pub fn spin(n: u64) -> u64 "
                            "{ std::hint::black_box(n) * 3 } }\n"
                            "fn main() { println!(\"{}\", deep::spin(4)); }\n");
    for (size_t i = 0; i < ARRAY_SIZE(manglings); i++) {
        char command[512];
        uint64_t spin;

        CHECK(made_run("rustc -O %s -C link-arg=-Wl,--build-id "
                       "-o program source.rs",
                       manglings[i]));
        mapping = made_mapping("program");
        snprintf(command, sizeof(command),
                 "cd %s && nm program | sed -n 's/\\(.*\\) t _.*4deep4spin.*/\\1/p'", made_in());
        spin = made_number(command);
        CHECK(spin != UINT64_MAX);
        CHECK_STREQ(made_look_up(&mapping, made_offset_of("program", spin), &local, &name),
                    "source::deep::spin");
    }
}

TEST(stripped_program_of_go_is_named_by_the_table_of_its_runtime) {
    FrameMapping mapping;
    uint64_t spin;
    FrameName name;

    if (!made_has("go"))
        TEST_SKIP("go is not installed");
    made_write("source.go", "package main\nimport \"os\"\n//go:noinline\nfunc spin(n int) int "
                            "{ return n * 3 }\nfunc main() { os.Exit(spin(len(os.Args))) }\n");
    CHECK(made_run("GOFLAGS= GOCACHE=$PWD/go-cache go build -o whole source.go"));
    CHECK(made_run("GOFLAGS= GOCACHE=$PWD/go-cache go build -ldflags=-s -o program source.go"));
    mapping = made_mapping("program");
    made_identify("program", &mapping);
    spin = made_offset("whole", "main.spin");
    CHECK(spin != UINT64_MAX);
    CHECK_STREQ(made_look_up(&mapping, spin, &local, &name), "main.spin");
    CHECK_EQ(name.start, spin);
}

/* The content of a folder, to see whether a table was written anew. */
static uint64_t folder_sum(const char *folder) {
    char command[256];

    snprintf(command, sizeof(command), "cd %s && ls -i --full-time %s | cksum", made_in(), folder);
    return made_number(command);
}

TEST(parsed_tables_are_kept_until_the_file_is_another) {
    const char *folder = made_path("tables");
    SymbolOptions options = {.local_files = true, .table_cache = folder};
    FrameMapping mapping;
    uint64_t alpha, sum;
    FrameName name;

    CHECK(compile_c("program", "-static"));
    mapping = made_mapping("program");
    alpha = made_offset("program", "alpha");
    CHECK_STREQ(made_look_up(&mapping, alpha, &options, &name), "alpha");
    CHECK(made_run("ls tables/*.names"));
    sum = folder_sum("tables");
    CHECK_STREQ(made_look_up(&mapping, alpha, &options, &name), "alpha");
    CHECK_EQ(folder_sum("tables"), sum);
    /* What is in the file is used. */
    CHECK(made_run("sed -i 's/\\x00alpha\\x00/\\x00ALPHA\\x00/' tables/*.names"));
    CHECK_STREQ(made_look_up(&mapping, alpha, &options, &name), "ALPHA");
    CHECK(made_run("touch program"));
    CHECK_STREQ(made_look_up(&mapping, alpha, &options, &name), "alpha");
    /* A file that is cut short is of no use. */
    CHECK(made_run("truncate -s 40000 tables/*.names"));
    CHECK_STREQ(made_look_up(&mapping, alpha, &options, &name), "alpha");
    /* Nobody else may have written there. */
    CHECK(made_run("sed -i 's/\\x00alpha\\x00/\\x00ALPHA\\x00/' tables/*.names && "
                   "chmod 777 tables"));
    CHECK_STREQ(made_look_up(&mapping, alpha, &options, &name), "alpha");
}

TEST(tables_that_were_used_longest_ago_are_removed_first) {
    CHECK(made_run("rm -rf kept && mkdir -m 700 kept kept/folder && cd kept && "
                   "for i in 5 3 9 1 7; do head -c 1000 /dev/zero >aa0$i.names; "
                   "touch -d \"$i days ago\" aa0$i.names; done && "
                   "echo x >ancient.names && touch -d '90 days ago' ancient.names"));
    kept_table_trim(made_path("kept"), 10000);
    CHECK(made_run("test \"$(echo $(ls kept))\" = "
                   "'aa01.names aa03.names aa05.names aa07.names aa09.names folder'"));
    kept_table_trim(made_path("kept"), 3999);
    CHECK(made_run("test \"$(echo $(ls kept))\" = 'aa01.names aa03.names aa05.names folder'"));
    CHECK(made_run("chmod 777 kept"));
    kept_table_trim(made_path("kept"), 0); /* not a folder of ours alone */
    CHECK(made_run("chmod 700 kept && test $(ls kept | wc -l) = 4"));
    kept_table_trim(made_path("kept"), 0);
    CHECK(made_run("test \"$(echo $(ls kept))\" = folder"));
    kept_table_trim(made_path("nowhere"), 0);
    kept_table_trim(NULL, 0);
}

TEST(path_that_is_no_file_is_not_opened) {
    FrameMapping mapping;
    FrameName name;

    CHECK(compile_c("program", ""));
    mapping = made_mapping("program");
    CHECK(made_run("rm -f program && mkfifo program"));
    CHECK(strstr(made_look_up(&mapping, 0x1000, &local, &name), "program+0x1000"));
    mapping.path = (Bytes){.data = (const uint8_t *)"/dev/zero", .size = 9};
    CHECK(strstr(made_look_up(&mapping, 0x1000, &local, &name), "zero+0x1000"));
    mapping.path = (Bytes){.data = (const uint8_t *)"//anon", .size = 6};
    CHECK(strstr(made_look_up(&mapping, 0x1000, &local, &name), "anon+0x1000"));
}

TEST(mapped_file_is_opened_only_if_it_is_the_mapped_one) {
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = NULL;
    _cleanup_close_ int fd = -1;
    FrameMapping mapping;
    char magic[4];

    CHECK(compile_c("program", ""));
    mapping = made_mapping("program");
    CHECK_OK(symbol_resolver_new(&local, &resolver));
    CHECK_OK(symbol_open_file(resolver, &mapping, &fd));
    CHECK_EQ(pread(fd, magic, 4, 0), 4);
    CHECK(memcmp(magic, "\177ELF", 4) == 0);
    CHECK(compile_c("program", "-O2"));
    CHECK_EQ(symbol_open_file(resolver, &mapping, &fd), -ESTALE);
    CHECK(unlink(made_path("program")) == 0);
    CHECK_EQ(symbol_open_file(resolver, &mapping, &fd), -ENOENT);
}

TEST(frames_that_are_no_code_have_fixed_names) {
    static const struct {
        FrameKind kind;
        const char *text;
        FrameNaming naming;
    } rows[] = {{FRAME_UNKNOWN, "[unknown]", FRAME_NOWHERE}, {FRAME_OTHER, "[other]", FRAME_NAMED}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        FrameName name;

        CHECK_STREQ(made_look_up(&(FrameMapping){.kind = rows[i].kind}, 77, &local, &name),
                    rows[i].text);
        CHECK_EQ(name.naming, rows[i].naming);
    }
}

TEST(later_frames_of_a_profile_are_added) {
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = NULL;
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    FrameMapping mapping;

    CHECK(compile_c("program", ""));
    mapping = made_mapping("program");
    CHECK_OK(symbol_resolver_new(&local, &resolver));
    (void)made_frame(&made, &mapping, made_offset("program", "alpha"), false);
    CHECK_OK(symbol_name_frames(resolver, &made.profile, made.names));
    CHECK_EQ(made.names->n_names, 1u);
    (void)made_frame(&made, &mapping, made_offset("program", "beta"), false);
    (void)made_frame(&made, &mapping, made_offset("program", "main"), false);
    CHECK_OK(symbol_name_frames(resolver, &made.profile, made.names));
    CHECK_EQ(made.names->n_names, 3u);
    CHECK_STREQ(made_name(&made, 0), "alpha");
    CHECK_STREQ(made_name(&made, 1), "beta");
    CHECK_STREQ(made_name(&made, 2), "main");
}

/* Names one function with a resolver that goes on. */
static const char *name_by(SymbolResolver *resolver, const FrameMapping *mapping) {
    static char text[256];
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    uint32_t frame = made_frame(&made, mapping, made_offset("program", "alpha"), false);

    if (symbol_name_frames(resolver, &made.profile, made.names) < 0)
        abort();
    snprintf(text, sizeof(text), "%s", made_name(&made, frame));
    return text;
}

TEST(file_without_a_build_id_is_read_again_after_it_was_overwritten_in_place) {
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = NULL;
    FrameMapping mapping;

    CHECK(compile_c("program", "-Wl,--build-id=none"));
    CHECK(made_run(
        "cp program bare && cp program other && objcopy --redefine-sym alpha=omega other"));
    mapping = made_mapping("bare");
    made_identify("bare", &mapping);
    if (mapping.generation == 0)
        TEST_SKIP("the file system has no generations");
    CHECK_OK(symbol_resolver_new(&local, &resolver));
    mapping.sampled_ns = written_ns_of("bare");
    CHECK_STREQ(name_by(resolver, &mapping), "alpha");
    CHECK(made_run("cat other >bare"));
    CHECK(written_ns_of("bare") > mapping.sampled_ns);
    CHECK(strstr(name_by(resolver, &mapping), "bare+0x"));
    mapping.sampled_ns = written_ns_of("bare");
    CHECK_STREQ(name_by(resolver, &mapping), "omega");
    mapping.sampled_ns--;
    CHECK(strstr(name_by(resolver, &mapping), "bare+0x"));
    mapping.sampled_ns++;
    CHECK_STREQ(name_by(resolver, &mapping), "omega");
    CHECK(made_run("rm bare"));
    CHECK_STREQ(name_by(resolver, &mapping), "omega");
}

TEST(mappings_that_were_used_longest_ago_are_forgotten_first) {
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = NULL;
    static const char *const files[] = {"first", "second", "third"};
    FrameMapping mappings[ARRAY_SIZE(files)];

    CHECK(compile_c("program", ""));
    CHECK_OK(symbol_resolver_new(&local, &resolver));
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        CHECK(made_run("cp program %s", files[i]));
        mappings[i] = made_mapping(files[i]);
        CHECK_STREQ(name_by(resolver, &mappings[i]), "alpha");
    }
    CHECK_STREQ(name_by(resolver, &mappings[0]), "alpha");
    symbol_resolver_limit(resolver, SIZE_MAX, 2);
    /* Only a table that is still there names a file that is gone. */
    CHECK(made_run("rm first second third"));
    CHECK_STREQ(name_by(resolver, &mappings[0]), "alpha");
    CHECK_STREQ(name_by(resolver, &mappings[2]), "alpha");
    CHECK(strcmp(name_by(resolver, &mappings[1]), "alpha") != 0);
}

TEST(table_that_is_too_large_is_forgotten_and_the_others_stay) {
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = NULL;
    FrameMapping small, large;

    CHECK(compile_c("large", "-static"));
    CHECK(compile_c("program", ""));
    CHECK(made_run("cp program small"));
    CHECK_OK(symbol_resolver_new(&local, &resolver));
    small = made_mapping("small");
    large = made_mapping("large");
    CHECK_STREQ(name_by(resolver, &small), "alpha");
    (void)name_by(resolver, &large);
    symbol_resolver_limit(resolver, 16 << 10, SIZE_MAX);
    CHECK(made_run("rm small"));
    CHECK_STREQ(name_by(resolver, &small), "alpha");
    symbol_resolver_limit(resolver, 0, SIZE_MAX);
    CHECK(strcmp(name_by(resolver, &small), "alpha") != 0);
}

TEST_MAIN()
