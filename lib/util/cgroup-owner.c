/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/cgroup-owner.h"

#include <ctype.h>
#include <stdlib.h>

#include "util/macro.h"

/*
 * One pass over the parts of a path. Slices come first, then a unit, then what the unit made below
 * itself. A user's service manager repeats this below its own unit. Containers are known by the
 * names that their runtimes give to groups, either directly (cgroupfs) or as a scope of systemd.
 */

enum { ID_DIGITS = 64, UUID_DIGITS = 32 };

typedef struct OwnerScope {
    const char *prefix, *runtime;
} OwnerScope;

/* clang-format off */
/* The groups PREFIX-ID.scope and PREFIX-ID, with an id of 64 digits. */
static const OwnerScope scopes[] = {
    {"docker-",         "docker"},
    {"cri-containerd-", "containerd"},
    {"nerdctl-",        "containerd"},
    {"crio-",           "cri-o"},
    {"libpod-",         "podman"},
};

/* The groups FOLDER/ID. */
static const OwnerScope folders[] = {
    {"docker", "docker"},
    {"lxc",    "lxc"},
};
/* clang-format on */

static Bytes cgroup_owner_text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static bool cgroup_owner_strip_prefix(Bytes *part, const char *prefix) {
    Bytes p = cgroup_owner_text(prefix);

    if (part->size <= p.size || memcmp(part->data, p.data, p.size) != 0)
        return false;
    part->data += p.size;
    part->size -= p.size;
    return true;
}

static bool cgroup_owner_strip_suffix(Bytes *part, const char *suffix) {
    Bytes s = cgroup_owner_text(suffix);

    if (part->size <= s.size || memcmp(part->data + part->size - s.size, s.data, s.size) != 0)
        return false;
    part->size -= s.size;
    return true;
}

static bool cgroup_owner_has_suffix(Bytes part, const char *suffix) {
    return cgroup_owner_strip_suffix(&part, suffix);
}

static bool cgroup_owner_equals(Bytes part, const char *word) {
    Bytes w = cgroup_owner_text(word);

    return part.size == w.size && memcmp(part.data, w.data, w.size) == 0;
}

static bool cgroup_owner_is_hex(Bytes part, size_t digits) {
    if (part.size != digits)
        return false;
    for (size_t i = 0; i < part.size; i++)
        if (!isxdigit(part.data[i]) || isupper(part.data[i]))
            return false;
    return true;
}

static Bytes cgroup_owner_next_part(Bytes path, size_t *at) {
    size_t from;

    while (*at < path.size && path.data[*at] == '/')
        (*at)++;
    from = *at;
    while (*at < path.size && path.data[*at] != '/')
        (*at)++;
    /* The empty path may be NULL. */
    return *at > from ? (Bytes){.data = path.data + from, .size = *at - from} : (Bytes){};
}

static bool cgroup_owner_is_unit(Bytes part) {
    static const char *const types[] = {".service", ".scope", ".socket", ".mount", ".swap"};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (cgroup_owner_has_suffix(part, types[i]))
            return true;
    return false;
}

/* Each `\xNN` becomes its byte. Names that do not fit or contain a NUL are left out. */
static void cgroup_owner_set_container(CgroupOwner *owner, const char *runtime, Bytes name) {
    size_t n = 0;

    if (name.size >= sizeof(owner->container) || memchr(name.data, '\0', name.size))
        return;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];

        if (c == '\\' && name.size - i >= 4 && name.data[i + 1] == 'x' &&
            isxdigit(name.data[i + 2]) && isxdigit(name.data[i + 3])) {
            const char digits[] = {(char)name.data[i + 2], (char)name.data[i + 3], '\0'};
            unsigned long byte = strtoul(digits, NULL, 16);

            if (byte != 0) {
                c = (uint8_t)byte;
                i += 3;
            }
        }
        owner->container[n++] = (char)c;
    }
    owner->container[n] = '\0';
    owner->runtime = runtime;
}

/* pod8c1f…: a UUID, in a slice with `_` for `-`, or the 32 digits of a static pod. */
static void cgroup_owner_set_pod(CgroupOwner *owner, Bytes uid) {
    size_t digits = 0;
    char text[CGROUP_POD_MAX];

    if (uid.size >= sizeof(text))
        return;
    for (size_t i = 0; i < uid.size; i++) {
        char c = (char)uid.data[i];

        if (c == '_')
            c = '-';
        if (c != '-' && !isxdigit((unsigned char)c))
            return;
        digits += c != '-';
        text[i] = c;
    }
    if (digits != UUID_DIGITS)
        return;
    memcpy(owner->pod, text, uid.size);
    owner->pod[uid.size] = '\0';
}

/* Where `pod` begins in kubepods-besteffort-podUID.slice or podUID. */
static bool cgroup_owner_strip_to_pod(Bytes *part) {
    static const char *const prefixes[] = {"kubepods-besteffort-pod", "kubepods-burstable-pod",
                                           "kubepods-pod", "pod"};

    (void)cgroup_owner_strip_suffix(part, ".slice");
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (cgroup_owner_strip_prefix(part, prefixes[i]))
            return true;
    return false;
}

static void cgroup_owner_take_container(CgroupOwner *owner, Bytes part, Bytes parent) {
    Bytes name = part;
    bool is_scope = cgroup_owner_strip_suffix(&name, ".scope");

    for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
        Bytes id = name;

        if (cgroup_owner_strip_prefix(&id, scopes[i].prefix) && cgroup_owner_is_hex(id, ID_DIGITS))
            cgroup_owner_set_container(owner, scopes[i].runtime, id);
    }
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        if (cgroup_owner_equals(parent, folders[i].prefix) &&
            (i > 0 || cgroup_owner_is_hex(part, ID_DIGITS)))
            cgroup_owner_set_container(owner, folders[i].runtime, part);
    name = part;
    if (cgroup_owner_strip_prefix(&name, "lxc.payload."))
        cgroup_owner_set_container(owner, "lxc", name);
    name = part;
    if (is_scope && cgroup_owner_strip_suffix(&name, ".scope") &&
        cgroup_owner_strip_prefix(&name, "machine-"))
        cgroup_owner_set_container(owner, "nspawn", name);
    name = part;
    if (cgroup_owner_strip_suffix(&name, ".service") &&
        cgroup_owner_strip_prefix(&name, "systemd-nspawn@"))
        cgroup_owner_set_container(owner, "nspawn", name);
    name = parent;
    if (cgroup_owner_is_hex(part, ID_DIGITS) && cgroup_owner_strip_to_pod(&name) &&
        owner->pod[0] != '\0')
        cgroup_owner_set_container(owner, "kubernetes", part);
}

static void cgroup_owner_take_unit(CgroupOwner *owner, Bytes part) {
    Bytes name = part;

    /* systemd puts `_` before a name that would collide with a file of the kernel. */
    (void)cgroup_owner_strip_prefix(&name, "_");
    if (cgroup_owner_has_suffix(name, ".slice")) {
        if (owner->unit.size == 0)
            owner->slice = name;
    } else if (cgroup_owner_is_unit(name)) {
        Bytes manager = owner->unit;

        if (owner->unit.size == 0)
            owner->unit = name;
        else if (owner->user_unit.size == 0 && cgroup_owner_strip_prefix(&manager, "user@"))
            owner->user_unit = name;
    }
}

void cgroup_owner_find(Bytes path, CgroupOwner *ret) {
    CgroupOwner owner = {};
    Bytes part, parent = {};

    for (size_t at = 0; (part = cgroup_owner_next_part(path, &at)).size > 0; parent = part) {
        Bytes uid = part;

        cgroup_owner_take_unit(&owner, part);
        if (cgroup_owner_strip_to_pod(&uid))
            cgroup_owner_set_pod(&owner, uid);
        cgroup_owner_take_container(&owner, part, parent);
    }
    *ret = owner;
}
