/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/remote-error.h"

#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/frame/command.h"
#include "protocol/interface.h"
#include "test.h"
#include "util/text.h"

static int describe(const char *error, const char *parameters, char *text, size_t size) {
    json_t *object = parameters ? json_loads(parameters, 0, NULL) : NULL;
    RemoteFailure failure = {
        .method = "Start", .error = error, .parameters = object, .version = "0.9"};
    Buffer out = {};
    int status = remote_error_describe(&failure, &out);

    text_putc(&out, '\0');
    snprintf(text, size, "%s", buffer_error(&out) ? "" : (const char *)out.data);
    buffer_done(&out);
    json_decref(object);
    return status;
}

#define CHECK_DESCRIBED(error, parameters, status, sentence)                                       \
    do {                                                                                           \
        char _text[1024];                                                                          \
        CHECK_EQ(describe(error, parameters, _text, sizeof(_text)), (int)status);                  \
        CHECK_STREQ(_text, sentence);                                                              \
    } while (0)

TEST(a_sentence_names_the_object_of_the_error) {
    CHECK_DESCRIBED("NoSuchSession", "{\"session\":\"web\"}", STATUS_NOT_FOUND,
                    "There is no session 'web'; 'profctl list' shows the sessions.");
    CHECK_DESCRIBED("NoSuchSession", "{\"session\":\"wbe\",\"near\":[\"web\"]}", STATUS_NOT_FOUND,
                    "There is no session 'wbe'. Did you mean 'web'?");
    CHECK_DESCRIBED("NoSuchSnapshot", "{\"name\":\"mnie\",\"near\":[\"mine\"]}", STATUS_NOT_FOUND,
                    "There is no snapshot 'mnie'. Did you mean 'mine'?");
    CHECK_DESCRIBED(
        "NotConfigured", "{\"session\":\"wbe\"}", STATUS_NOT_FOUND,
        "Session 'wbe' is not configured. A new session needs an event, such as -e auto.");
    CHECK_DESCRIBED("NotConfigured", "{\"session\":\"wbe\",\"near\":[\"web\",\"wbx\"]}",
                    STATUS_NOT_FOUND,
                    "Session 'wbe' is not configured. Did you mean 'web' or 'wbx'? A new session "
                    "needs an event, such as -e auto.");
    CHECK_DESCRIBED("BadSetting",
                    "{\"key\":\"Frequency\",\"value\":\"x\",\"expected\":\"a number\"}",
                    STATUS_USAGE, "Frequency=x is not understood: it takes a number.");
    CHECK_DESCRIBED("Busy", "{\"retryAfterMs\":2500}", STATUS_FAILED,
                    "profd is too busy; try again in 2 s.");
}

TEST(missing_parameters_of_an_error_are_tolerated) {
    CHECK_DESCRIBED("NoSuchSession", NULL, STATUS_NOT_FOUND,
                    "There is no session '?'; 'profctl list' shows the sessions.");
    CHECK_DESCRIBED("Failed", "{\"reason\":null}", STATUS_FAILED,
                    "profd failed; 'journalctl -u profd' shows more.");
    CHECK_DESCRIBED("NoSuchCgroup", "{\"session\": \"x\", \"cgroup\": \"nosuch.slice\"}",
                    STATUS_NOT_FOUND,
                    "Cannot start 'x': control group 'nosuch.slice' does not exist.");
    CHECK_DESCRIBED("NoSuchCgroup",
                    "{\"session\": \"x\", \"cgroup\": \"shpo\", \"near\": [\"/shop\"]}",
                    STATUS_NOT_FOUND,
                    "Cannot start 'x': control group 'shpo' does not exist. Did you mean '/shop'?");
    CHECK_DESCRIBED("NoSuchCpu", "{\"session\": \"x\", \"cpu\": 17}", STATUS_NOT_FOUND,
                    "Cannot start 'x': this host has no CPU 17.");
    CHECK_DESCRIBED("NoSuchProcess", "{\"session\": \"x\", \"pid\": 17}", STATUS_NOT_FOUND,
                    "Cannot start 'x': there is no process or thread 17.");
    CHECK_DESCRIBED("NoSuchUnit", "{\"session\": \"x\", \"unit\": \"shop\"}", STATUS_NOT_FOUND,
                    "Cannot start 'x': unit 'shop' has no control group.");
    CHECK_DESCRIBED("AmbiguousUnit",
                    "{\"session\": \"x\", \"unit\": \"shop\", \"cgroups\": [\"/a\", \"/b\"]}",
                    STATUS_USAGE,
                    "Cannot start 'x': 'shop' matches several control groups. Did you mean '/a' or "
                    "'/b'? Use --cgroup.");
    CHECK_DESCRIBED("NoSamplesMatch", "{\"selection\": \"comm 'x'\", \"near\": []}",
                    STATUS_NOT_FOUND, "No samples match comm 'x' in this window.");
    CHECK_DESCRIBED("NoSamplesMatch",
                    "{\"selection\": \"cgroup 'b'\", \"near\": [\"/a/b\", \"/c/b\", \"/b2\"]}",
                    STATUS_NOT_FOUND,
                    "No samples match cgroup 'b' in this window. Did you mean '/a/b', '/c/b' or "
                    "'/b2'?");
    CHECK_DESCRIBED("WindowUnavailable", "{}", STATUS_NOT_FOUND,
                    "profd has no recording of this window: it has recorded nothing yet.");
}

TEST(each_configuration_problem_has_its_file_and_line) {
    CHECK_DESCRIBED("ConfigInvalid",
                    "{\"problems\":[{\"path\":\"/a\",\"line\":3,\"text\":\"one\"},"
                    "{\"path\":\"/b\",\"line\":4,\"text\":\"two.\"}]}",
                    STATUS_FAILED,
                    "The configuration was not loaded, the previous one stays in effect:\n"
                    "  /a:3: one\n"
                    "  /b:4: two.");
}

TEST(an_older_daemon_is_named_in_the_message) {
    char text[1024];

    CHECK_EQ(
        describe("org.varlink.service.MethodNotFound", "{\"method\":\"x\"}", text, sizeof(text)),
        (int)STATUS_FAILED);
    CHECK(strstr(text, "profd 0.9 does not know 'Start': it is older than this profctl "));
}

/* "error NAME(" of the interface, the next after *at. */
static bool next_error(const char **at, char *name, size_t size) {
    const char *p = strstr(*at, "\nerror ");
    size_t n;

    if (!p)
        return false;
    p += strlen("\nerror ");
    n = strcspn(p, "( ");
    snprintf(name, size, "%.*s", (int)n, p);
    *at = p;
    return true;
}

TEST(every_error_of_the_interface_has_a_sentence) {
    const char *at = interface_text_control;
    char name[64], text[1024];
    unsigned n = 0;

    for (; next_error(&at, name, sizeof(name)); n++) {
        (void)describe(name, "{}", text, sizeof(text));
        if (strstr(text, "profd refused"))
            printf("# %s\n", name);
        CHECK(!strstr(text, "profd refused"));
    }
    CHECK(n >= 16);
}

TEST(a_refused_argument_is_named_with_its_reason) {
    char text[1024];

    CHECK_DESCRIBED("org.varlink.service.InvalidParameter",
                    "{\"parameter\":\"sinceUsec\",\"reason\":\"it is negative\"}", STATUS_USAGE,
                    "Invalid --since: it is negative.");
    CHECK_DESCRIBED("org.varlink.service.InvalidParameter",
                    "{\"parameter\":\"new\",\"reason\":\"it is unknown\"}", STATUS_USAGE,
                    "Invalid 'new': it is unknown.");
    /* An older profd sends no reason, and none is invented. */
    CHECK_EQ(describe("org.varlink.service.InvalidParameter", "{\"parameter\":\"cpus\"}", text,
                      sizeof(text)),
             (int)STATUS_USAGE);
    CHECK(strstr(text, "profd 0.9 does not accept --cpu and gives no reason"));
}

TEST(an_unknown_error_is_named_and_escaped) {
    CHECK_DESCRIBED("New\x1b", NULL, STATUS_FAILED, "profd refused 'Start': New\\x1b.");
}

TEST(a_denial_names_the_group_that_may_call_the_method) {
    bool is_root = geteuid() == 0;
    char text[1024];
    int status;

    /* Root is denied nothing, so become another user; the sentence depends on its groups. */
    if (is_root) {
        CHECK_OK(setgroups(0, NULL));
        CHECK_OK(seteuid(65534));
    }
    status = describe("org.varlink.service.PermissionDenied", NULL, text, sizeof(text));
    /* Without both, LeakSanitizer may not inspect its own process. */
    if (is_root) {
        CHECK_OK(seteuid(0));
        CHECK_OK(prctl(PR_SET_DUMPABLE, 1));
    }
    CHECK_EQ(status, (int)STATUS_NOT_PERMITTED);
    CHECK(strstr(
        text, "Permission denied: 'Start' requires root or membership in 'profd-admin'.\nHint: "));
}

TEST_MAIN()
