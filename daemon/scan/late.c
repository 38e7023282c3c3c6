/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/late.h"

#include "util/clock.h"
#include "util/macro.h"

/*
 * A process can keep its own maps from being read, and a user can have thousands of such processes.
 * Each is waited for once, and then again and again in the background. A user is in debt for the
 * time for which profd waited and gets a share of the time in return. The more he is in debt the
 * less his other processes are waited for, so that those of others are not delayed: one that can be
 * read answers at once. Only the users who were waited for most recently are known, and a user may
 * have thousands of numbers, so everybody is waited for less if all together are in debt.
 */

#define LATE_BURST_NS (1 * NS_PER_SECOND)
#define LATE_LIMIT_NS (5 * NS_PER_SECOND)

enum {
    LATE_USER_SHARE = 20, /* one part in this many */
    LATE_HURRY_MS = 25,   /* still as long as a busy host may take */
};

bool late_has(const LateProcesses *late, uint32_t pid) {
    for (size_t i = 0; i < late->n; i++)
        if (late->pids[(late->first + i) % LATE_PROCESSES_MAX] == pid)
            return true;
    return false;
}

void late_add(LateProcesses *late, uint32_t pid) {
    if (late->n < LATE_PROCESSES_MAX && !late_has(late, pid))
        late->pids[(late->first + late->n++) % LATE_PROCESSES_MAX] = pid;
}

bool late_take(LateProcesses *late, uint32_t *ret_pid) {
    if (late->n == 0)
        return false;
    *ret_pid = late->pids[late->first];
    late->first = (late->first + 1) % LATE_PROCESSES_MAX;
    late->n--;
    return true;
}

static uint64_t late_debt(const LateUser *user, uint64_t now_ns) {
    uint64_t earned_ns = (now_ns - user->at_ns) / LATE_USER_SHARE;

    return user->debt_ns > earned_ns ? user->debt_ns - earned_ns : 0;
}

/* Forgets users without debt. */
static LateUser *late_find_user(LateProcesses *late, uid_t uid, uint64_t now_ns) {
    for (size_t i = 0; i < late->n_users;) {
        if (late_debt(&late->users[i], now_ns) == 0)
            late->users[i] = late->users[--late->n_users];
        else if (late->users[i].uid == uid)
            return &late->users[i];
        else
            i++;
    }
    return NULL;
}

/* The place of a new user: that of the one who was charged least recently, if there are too many.
 */
static LateUser *late_new_user(LateProcesses *late) {
    LateUser *oldest = &late->users[0];

    if (late->n_users < LATE_USERS_MAX)
        return &late->users[late->n_users++];
    for (size_t i = 1; i < LATE_USERS_MAX; i++)
        if (late->users[i].at_ns < oldest->at_ns)
            oldest = &late->users[i];
    return oldest;
}

void late_charge(LateProcesses *late, uid_t uid, uint64_t waited_ns, uint64_t now_ns) {
    LateUser *user = late_find_user(late, uid, now_ns);
    uint64_t debt_ns = user ? late_debt(user, now_ns) : 0;

    if (!user)
        user = late_new_user(late);
    *user = (LateUser){.uid = uid, .debt_ns = debt_ns + waited_ns, .at_ns = now_ns};
    late->all = (LateUser){.debt_ns = late_debt(&late->all, now_ns) + waited_ns, .at_ns = now_ns};
    late->waited_ns += waited_ns;
}

unsigned late_patience_ms(LateProcesses *late, uid_t uid, uint64_t now_ns) {
    const LateUser *user = late_find_user(late, uid, now_ns);
    uint64_t debt_ns = user ? late_debt(user, now_ns) : 0;

    if (debt_ns > LATE_LIMIT_NS)
        return 0;
    return debt_ns > LATE_BURST_NS || late_debt(&late->all, now_ns) > LATE_LIMIT_NS
               ? LATE_HURRY_MS
               : LATE_PATIENCE_MS;
}
