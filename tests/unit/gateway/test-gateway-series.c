/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "interval/pod-names.h"
#include "interval/series.h"
#include "make-profile.h"
#include "make-root.h"
#include "test.h"

/* Intervals made by hand, divided into series. */

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "11111111-2222-3333-4444-555555555555"
#define POD                                                                                        \
    "/kubepods.slice/kubepods-burstable.slice/"                                                    \
    "kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-" ID ".scope"

static Interval *interval;
static MadeProfile made;

static void begin(void) {
    made = make_profile(INTERVAL_KEYS);
    (void)make_event(&made, "cpu-clock", true);
    made_ok(interval_new(0, 10, made.profile, made.names, &interval));
}

/* Samples of one process. */
static void add(const char *comm, uint32_t pid, const char *cgroup, uint64_t samples) {
    ProfileLabel *label = make_label(&made);

    label->values[PROFILE_EVENT] = 0;
    label->values[PROFILE_COMM] = make_text(&made, comm);
    label->values[PROFILE_PID] = pid;
    label->values[PROFILE_CGROUP] = make_text(&made, cgroup);
    make_cell(&made, STACK_ROOT, samples, samples * 10);
}

static SeriesList divide(RelabelRule *const *rules, size_t n_rules, size_t max_series) {
    const SeriesOptions options = {
        .host = "web-1", .rules = rules, .n_rules = n_rules, .max_series = max_series};
    SeriesList list;

    made_ok(series_list_make(interval, &options, &list));
    return list;
}

static void end(SeriesList *list) {
    series_list_done(list);
    interval = interval_unref(interval);
}

static const char *label_of(const SeriesList *list, size_t series, const char *name) {
    return label_set_get(&list->items[series].labels, name) ?: "none";
}

static RelabelRule *rule_of(RelabelText text) {
    const char *problem;
    RelabelRule *rule;

    made_ok(relabel_rule_new(&text, &rule, &problem));
    return rule;
}

/* What a service is called whose samples have this name and group. */
static void check_service(const char *comm, const char *cgroup, const char *expected) {
    SeriesList list;

    begin();
    add(comm, 1, cgroup, 1);
    list = divide(NULL, 0, 0);
    CHECK_EQ(list.n, 1);
    CHECK_STREQ(label_of(&list, 0, "service_name"), expected);
    end(&list);
}

TEST(unit_gives_labels_and_a_service_name) {
    SeriesList list;

    begin();
    add("nginx", 7, "/system.slice/system-web.slice/web@3.service", 5);
    list = divide(NULL, 0, 0);
    CHECK_EQ(list.n, 1);
    CHECK_STREQ(label_of(&list, 0, "host"), "web-1");
    CHECK_STREQ(label_of(&list, 0, "unit"), "web@3.service");
    CHECK_STREQ(label_of(&list, 0, "slice"), "system-web.slice");
    CHECK_STREQ(label_of(&list, 0, "comm"), "nginx");
    CHECK_STREQ(label_of(&list, 0, "event"), "cpu-clock");
    CHECK_STREQ(label_of(&list, 0, "service_name"), "web");
    CHECK_STREQ(label_of(&list, 0, "cgroup"), "none");
    CHECK_EQ(list.items[0].samples, 5);
    CHECK_EQ(list.items[0].period, 50);
    end(&list);
}

TEST(service_name_follows_its_rule) {
    check_service("nginx", "/system.slice/nginx.service", "nginx");
    check_service("bash", "/user.slice/user-1000.slice/session-3.scope", "bash");
    check_service("systemd", "/init.scope", "init");
    check_service("app", "/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service",
                  "editor");
    check_service("redis", "/system.slice/docker-" ID ".scope", "redis");
    check_service("kworker/0:1", "/", "kworker/0:1");
    check_service("", "/", "unknown");
}

TEST(group_without_a_unit_is_a_label) {
    SeriesList list;

    begin();
    add("job", 1, "/batch/night", 1);
    list = divide(NULL, 0, 0);
    CHECK_STREQ(label_of(&list, 0, "cgroup"), "/batch/night");
    CHECK_STREQ(label_of(&list, 0, "unit"), "none");
    end(&list);
}

TEST(processes_of_one_service_are_one_series) {
    SeriesList list;

    begin();
    add("web", 2, "/system.slice/web.service", 3);
    add("db", 3, "/system.slice/db.service", 4);
    add("web", 9, "/system.slice/web.service", 5);
    list = divide(NULL, 0, 0);
    CHECK_EQ(list.n, 2);
    CHECK_STREQ(label_of(&list, 0, "comm"), "db");
    CHECK_EQ(list.items[1].samples, 8);
    CHECK_EQ(list.of_label[0], 1);
    CHECK_EQ(list.of_label[1], 0);
    CHECK_EQ(list.of_label[2], 1);
    end(&list);
}

TEST(events_are_never_one_series) {
    RelabelRule *rule = rule_of(
        (RelabelText){.action = RELABEL_REPLACE, .target_label = "event", .replacement = "all"});
    SeriesList list;

    begin();
    (void)make_event(&made, "cycles", false);
    add("web", 2, "/system.slice/web.service", 3);
    add("web", 2, "/system.slice/web.service", 4);
    made.profile->labels[1].values[PROFILE_EVENT] = 1;
    list = divide(&rule, 1, 0);
    CHECK_EQ(list.n, 2);
    CHECK_EQ(list.items[0].event, 0);
    CHECK_EQ(list.items[1].samples, 4);
    end(&list);
    relabel_rule_free(rule);
}

TEST(rule_that_drops_is_counted) {
    RelabelRule *rule = rule_of(
        (RelabelText){.action = RELABEL_DROP, .source_labels = "comm", .regex = "secret.*"});
    SeriesList list;

    begin();
    add("secret-1", 2, "/system.slice/web.service", 3);
    add("web", 2, "/system.slice/web.service", 4);
    list = divide(&rule, 1, 0);
    CHECK_EQ(list.n, 1);
    CHECK_EQ(list.dropped, 3);
    CHECK_EQ(list.of_label[0], SERIES_NONE);
    CHECK_EQ(list.of_label[1], 0);
    end(&list);
    relabel_rule_free(rule);
}

TEST(sets_that_a_rule_makes_equal_are_one_series) {
    RelabelRule *rule =
        rule_of((RelabelText){.action = RELABEL_LABELDROP, .regex = "comm|event|service_name"});
    SeriesList list;

    begin();
    add("one", 2, "/system.slice/web.service", 3);
    add("two", 2, "/system.slice/web.service", 4);
    list = divide(&rule, 1, 0);
    CHECK_EQ(list.n, 1);
    CHECK_EQ(list.items[0].samples, 7);
    CHECK_STREQ(label_of(&list, 0, "event"), "cpu-clock");
    CHECK_STREQ(label_of(&list, 0, "service_name"), "unknown");
    CHECK_STREQ(label_of(&list, 0, "host"), "web-1");
    end(&list);
    relabel_rule_free(rule);
}

TEST(series_with_the_fewest_samples_become_other) {
    SeriesList list;

    begin();
    add("small", 1, "/", 1);
    add("large", 1, "/", 100);
    add("tiny", 1, "/", 2);
    add("middle", 1, "/", 50);
    list = divide(NULL, 0, 3);
    CHECK_EQ(list.n, 3);
    CHECK_EQ(list.other, 3);
    for (size_t i = 0; i < list.n; i++)
        CHECK(strcmp(label_of(&list, i, "comm"), "small") != 0 &&
              strcmp(label_of(&list, i, "comm"), "tiny") != 0);
    CHECK_EQ(list.of_label[0], list.of_label[2]);
    CHECK_STREQ(label_of(&list, list.of_label[0], "service_name"), "other");
    CHECK_EQ(list.items[list.of_label[0]].samples, 3);
    CHECK_STREQ(label_of(&list, list.of_label[1], "comm"), "large");
    end(&list);
}

/* A value above its limit may be in a series above the other limit. */
TEST(values_beyond_the_limit_become_other_and_are_counted_once) {
    SeriesOptions options = {.host = "web-1", .max_values = 2};
    const char *const unit = "/system.slice/shop.service";
    SeriesList list;

    begin();
    add("a", 1, unit, 100);
    add("b", 1, unit, 50);
    add("c", 1, unit, 2);
    add("d", 1, unit, 1);
    made_ok(series_list_make(interval, &options, &list));
    CHECK_EQ(list.n, 3);
    CHECK_EQ(list.other, 3);
    CHECK_STREQ(label_of(&list, list.of_label[0], "comm"), "a");
    CHECK_STREQ(label_of(&list, list.of_label[1], "comm"), "b");
    CHECK_EQ(list.of_label[2], list.of_label[3]);
    CHECK_STREQ(label_of(&list, list.of_label[2], "comm"), "other");
    CHECK_STREQ(label_of(&list, list.of_label[2], "service_name"), "shop");
    CHECK_STREQ(label_of(&list, list.of_label[2], "unit"), "shop.service");
    CHECK_EQ(list.items[list.of_label[2]].samples, 3);
    series_list_done(&list);
    options.max_series = 2;
    made_ok(series_list_make(interval, &options, &list));
    CHECK_EQ(list.other, 53);
    end(&list);
}

/* The unit has the most samples of all, though no name of its threads has. */
TEST(service_with_many_thread_names_stays_one_service) {
    SeriesOptions options = {.host = "web-1", .max_values = 2};
    SeriesList list;
    char comm[16];

    begin();
    add("one", 1, "/system.slice/one.service", 3);
    add("two", 2, "/system.slice/two.service", 2);
    for (uint32_t i = 0; i < 10; i++) {
        snprintf(comm, sizeof(comm), "t%u", i);
        add(comm, 3, "/system.slice/shop.service", 1);
    }
    made_ok(series_list_make(interval, &options, &list));
    CHECK_STREQ(label_of(&list, list.of_label[5], "service_name"), "shop");
    CHECK_STREQ(label_of(&list, list.of_label[5], "comm"), "other");
    CHECK_STREQ(label_of(&list, list.of_label[0], "service_name"), "one");
    CHECK_STREQ(label_of(&list, list.of_label[1], "service_name"), "other");
    CHECK_EQ(list.other, 12);
    end(&list);
}

TEST(many_names_take_no_more_series_than_the_limit) {
    SeriesList list;
    char comm[16];
    uint64_t sum = 0;

    begin();
    for (uint32_t i = 0; i < SERIES_MAX + 1000; i++) {
        snprintf(comm, sizeof(comm), "c%u", i);
        add(comm, 1, "/", 1 + i % 3);
    }
    list = divide(NULL, 0, 0);
    CHECK(list.n <= SERIES_MAX + 1);
    for (size_t i = 0; i < list.n; i++)
        sum += list.items[i].samples;
    CHECK_EQ(sum, made.profile->samples);
    CHECK(list.other > 0);
    end(&list);
}

TEST(order_of_the_profile_does_not_matter) {
    static const char *const comms[] = {"a", "b", "c", "d", "e", "f"};
    SeriesList one, two;
    Interval *first;

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(comms); i++)
        add(comms[i], 1, "/x", 1 + i % 2);
    one = divide(NULL, 0, 4);
    first = interval;
    begin();
    for (size_t i = ARRAY_SIZE(comms); i > 0; i--)
        add(comms[i - 1], 1, "/x", 1 + (i - 1) % 2);
    two = divide(NULL, 0, 4);
    CHECK_EQ(one.n, two.n);
    for (size_t i = 0; i < one.n; i++) {
        CHECK_STREQ(label_of(&one, i, "comm"), label_of(&two, i, "comm"));
        CHECK_EQ(one.items[i].samples, two.items[i].samples);
    }
    end(&two);
    series_list_done(&one);
    interval_unref(first);
}

TEST(hostile_values_are_escaped_and_cut) {
    char path[3000];
    const char *value;
    SeriesList list;

    begin();
    add("\xff\x1b[31m", 1, "/", 1);
    path[0] = '/';
    memset(path + 1, 'x', sizeof(path) - 2);
    /* An umlaut at each second byte, so that one lies over the end. */
    for (size_t i = 2; i + 2 < sizeof(path); i += 2)
        memcpy(path + i, "\xc3\xbc", 2);
    path[sizeof(path) - 1] = '\0';
    add("long", 1, path, 2);
    list = divide(NULL, 0, 0);
    CHECK_EQ(list.n, 2);
    CHECK_STREQ(label_of(&list, list.of_label[0], "comm"), "\\xff\\x1b[31m");
    value = label_of(&list, list.of_label[1], "cgroup");
    CHECK(strlen(value) <= LABEL_VALUE_MAX && strlen(value) >= LABEL_VALUE_MAX - 4);
    CHECK_EQ((unsigned char)value[strlen(value) - 1], 0xbc);
    end(&list);
}

static void make_kubelet(void) {
    begin_root();
    put_folder("/var/log/pods/shop_cart-7d9f_" UID "/cart");
    put_folder("/var/log/pods/not-a-pod");
    put_folder("/var/log/pods/a_b_c_" UID);
    put_folder("/var/log/pods/__" UID);
    put("/var/log/containers/cart-7d9f_shop_cart-" ID ".log", "");
    put("/var/log/containers/cart-7d9f_shop_cart-short.log", "");
    put("/var/log/containers/-.log", "");
}

TEST(kubernetes_names_come_from_the_log_files) {
    PodNames *names;
    SeriesList list;

    make_kubelet();
    CHECK_OK(pod_names_new(root, &names));
    begin();
    add("java", 1, POD, 3);
    CHECK_OK(pod_names_add(names, 1, interval));
    CHECK_EQ(interval->n_pods, 1);
    list = divide(NULL, 0, 0);
    CHECK_STREQ(label_of(&list, 0, "namespace"), "shop");
    CHECK_STREQ(label_of(&list, 0, "pod_name"), "cart-7d9f");
    CHECK_STREQ(label_of(&list, 0, "container_name"), "cart");
    CHECK_STREQ(label_of(&list, 0, "pod"), UID);
    CHECK_STREQ(label_of(&list, 0, "container"), ID);
    CHECK_STREQ(label_of(&list, 0, "runtime"), "containerd");
    CHECK_STREQ(label_of(&list, 0, "service_name"), "cart");
    end(&list);
    pod_names_free(names);
    end_root();
}

TEST(pod_that_is_gone_keeps_its_names) {
    PodNames *names;

    make_kubelet();
    CHECK_OK(pod_names_new(root, &names));
    begin();
    add("java", 1, POD, 3);
    CHECK_OK(pod_names_add(names, 1, interval));
    interval = interval_unref(interval);
    end_root();
    begin();
    /* An unknown pod makes it look again. */
    add("java", 1, "/kubepods/pod99999999-2222-3333-4444-555555555555/" ID, 3);
    add("java", 1, POD, 3);
    CHECK_OK(pod_names_add(names, 2 * POD_NAMES_PAUSE_NS, interval));
    CHECK(interval_pod(interval, made.profile->labels[1].values[PROFILE_CGROUP]));
    interval = interval_unref(interval);
    pod_names_free(names);
}

TEST(number_of_pods_is_bounded) {
    PodNames *names;
    char path[256];

    begin_root();
    put_folder("/var/log/pods");
    for (unsigned i = 0; i < POD_NAMES_MAX / 2 + 100; i++) {
        snprintf(path, sizeof(path), "%s/var/log/pods/n_p%u_%08x-2222-3333-4444-555555555555", root,
                 i, i);
        CHECK_EQ(mkdir(path, 0700), 0);
    }
    CHECK_OK(pod_names_new(root, &names));
    begin();
    for (unsigned i = 0; i < POD_NAMES_MAX / 2 + 100; i++) {
        snprintf(path, sizeof(path), "/kubepods/pod%08x-2222-3333-4444-555555555555", i);
        add("java", i, path, 3);
    }
    CHECK_OK(pod_names_add(names, 1, interval));
    CHECK_EQ(interval->n_pods, POD_NAMES_MAX / 2);
    interval = interval_unref(interval);
    pod_names_free(names);
    end_root();
}

TEST_MAIN()
