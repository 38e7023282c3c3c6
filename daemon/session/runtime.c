/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "protocol/value.h"
#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "util/clock.h"
#include "util/file.h"

/*
 * One small JSON file, replaced by a rename whenever something changes. Settings are saved as the
 * client sent them and pass the same checks when they are loaded. Times count from this boot, so a
 * file from an earlier boot is useless.
 */

#define KEPT_FILE ".sessions.json"

enum { RUNTIME_BYTES_MAX = 4 << 20, BOOT_ID_SIZE = 64 };

static void runtime_read_boot_id(char ret[BOOT_ID_SIZE]) {
    if (file_read_text("/proc/sys/kernel/random/boot_id", ret, BOOT_ID_SIZE) < 0)
        ret[0] = '\0';
}

static int runtime_open_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* It ends, or has ended, only to begin anew. */
static bool runtime_begins_anew(const SessionEntry *entry) {
    return (entry->state == SESSION_STOPPING || entry->state == SESSION_INACTIVE) &&
           (entry->next == NEXT_BEGIN || entry->next == NEXT_BEGIN_PAUSED);
}

static json_t *runtime_encode_session(const SessionEntry *entry) {
    SessionState state = entry->state;

    if (runtime_begins_anew(entry))
        state = entry->next == NEXT_BEGIN ? SESSION_ACTIVE : SESSION_PAUSED;
    else if (state == SESSION_STOPPING)
        state = SESSION_INACTIVE;
    return json_pack("{s:s, s:b, s:b, s:s, s:I, s:I, s:I, s:O}", "name", entry->config.name,
                     "runtime", entry->runtime, "enabled", entry->config.enabled, "state",
                     session_state_name(state), "sinceUsec",
                     (json_int_t)(entry->since_real_ns / NS_PER_US), "stateUsec",
                     (json_int_t)(entry->state_real_ns / NS_PER_US), "stopUsec",
                     (json_int_t)(entry->stop_at_ns / NS_PER_US), "settings",
                     entry->settings ? entry->settings : json_null());
}

static json_t *runtime_encode(const SessionTable *sessions, const RuntimeLog *log) {
    json_t *list = json_array();
    char boot[BOOT_ID_SIZE];

    for (size_t i = 0; i < session_table_count(sessions); i++) {
        const SessionEntry *entry = session_table_at(sessions, i);

        if (entry->runtime && !runtime_begins_anew(entry) &&
            (entry->state == SESSION_STOPPING || !entry->session))
            continue;
        value_append(&list, runtime_encode_session(entry));
    }
    runtime_read_boot_id(boot);
    return json_pack("{s:s, s:s?, s:o}", "bootId", boot, "logLevel",
                     log->is_set ? log_level_name(log->level) : NULL, "sessions", list);
}

/* Writes on the main thread: the runtime folder is in memory, and the change must be saved before
 * the client gets its reply. */
static int runtime_write_kept(int folder, Bytes text) {
    bool before = disk_forbid(false);
    int r = dirfd_write(folder, KEPT_FILE, text);

    (void)disk_forbid(before);
    return r;
}

int runtime_save(const char *folder, const SessionTable *sessions, const RuntimeLog *log) {
    _cleanup_close_ int fd = runtime_open_folder(folder);
    json_t *root = fd < 0 ? NULL : runtime_encode(sessions, log);
    _cleanup_free_ char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;

    json_decref(root);
    if (fd < 0)
        return fd;
    if (!text)
        return -ENOMEM;
    return runtime_write_kept(fd, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
}

static int runtime_decode_entry(json_t *value, SavedSession *ret) {
    json_int_t since, stop, in_state = 0; /* absent in a file that an older version wrote */
    const char *state;
    json_t *settings;
    int runtime, enabled = -1; /* absent, likewise */

    *ret = (SavedSession){};
    if (json_unpack(value, "{s:s, s:b, s?b, s:s, s:I, s?I, s:I, s:o}", "name", &ret->name,
                    "runtime", &runtime, "enabled", &enabled, "state", &state, "sinceUsec", &since,
                    "stateUsec", &in_state, "stopUsec", &stop, "settings", &settings) < 0 ||
        !config_name_is_valid(ret->name) || session_state_from_name(state, &ret->state) < 0 ||
        (uint64_t)since > INT64_MAX / NS_PER_US || (uint64_t)in_state > INT64_MAX / NS_PER_US ||
        (uint64_t)stop > INT64_MAX / NS_PER_US)
        return -EBADMSG;
    ret->runtime = runtime;
    ret->enabled = enabled;
    ret->since_real_ns = (uint64_t)since * NS_PER_US;
    ret->state_real_ns = (uint64_t)in_state * NS_PER_US;
    ret->stop_at_ns = (uint64_t)stop * NS_PER_US;
    ret->settings = json_is_object(settings) ? settings : NULL;
    return 0;
}

/* A level that no version of profd knows counts as not set. */
static RuntimeLog runtime_decode_log(const json_t *root) {
    const char *name = json_string_value(json_object_get(root, "logLevel"));
    RuntimeLog log = {};

    log.is_set = name && log_level_from_name(name, &log.level) == 0;
    return log;
}

static int runtime_decode(json_t *root, void (*fn)(void *userdata, const SavedSession *saved),
                          void *userdata) {
    const char *boot = json_string_value(json_object_get(root, "bootId"));
    json_t *list = json_object_get(root, "sessions"), *value;
    char ours[BOOT_ID_SIZE];
    size_t i;

    if (!boot || !json_is_array(list))
        return -EBADMSG;
    runtime_read_boot_id(ours);
    json_array_foreach(list, i, value) {
        SavedSession saved;

        if (runtime_decode_entry(value, &saved) < 0)
            return -EBADMSG;
        fn(userdata, &saved);
    }
    return strcmp(boot, ours) == 0 ? 0 : -ESTALE;
}

int runtime_load(const char *folder, void (*fn)(void *userdata, const SavedSession *saved),
                 void *userdata, RuntimeLog *ret_log) {
    _cleanup_close_ int fd = runtime_open_folder(folder);
    _cleanup_(buffer_done) Buffer text = {};
    json_t *root;
    int r = fd < 0 ? fd : dirfd_read(fd, KEPT_FILE, RUNTIME_BYTES_MAX, &text);

    if (r < 0)
        return r;
    root = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    r = root ? runtime_decode(root, fn, userdata) : -EBADMSG;
    if (r == 0)
        *ret_log = runtime_decode_log(root);
    json_decref(root);
    return r;
}

void runtime_forget(const char *folder) {
    _cleanup_close_ int fd = runtime_open_folder(folder);

    if (fd >= 0)
        (void)unlinkat(fd, KEPT_FILE, 0);
}
