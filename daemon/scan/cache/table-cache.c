/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/cache/table-cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

/*
 * The cache has an entry for each file, sorted by the numbers by which mappings name it, and a list
 * of tables. Files whose tables are equal in all bytes share one table. An entry also has the
 * identity of the opened file. After five minutes of use the file is opened again; it is read again
 * only if its identity has changed.
 *
 * The main thread looks up and changes entries, so a look-up takes no lock. The scanner's thread
 * only asks which files have tables. It does so under a lock, and the main thread changes entries
 * under the same lock.
 *
 * If tables take too many bytes, or there are too many entries, the least recently used one is
 * dropped. The table of that file is made again after a minute at the earliest, so a cache that is
 * too small for the host costs stacks and not CPU time. A file that could not be read for a reason
 * that is not its own is tried again, later each time; after a minute, or at once if profd may not
 * open it, samples no longer wait for it.
 */

#define RETRY_FIRST_NS NS_PER_SECOND
#define RETRY_LAST_NS  (600 * NS_PER_SECOND)
#define LOOK_AGAIN_NS  (300 * NS_PER_SECOND)
#define EVICTED_NS     (60 * NS_PER_SECOND)
#define PENDING_NS     (60 * NS_PER_SECOND)

/* How a mapping names its file. */
typedef struct TableKey {
    uint64_t inode, generation;
    uint32_t major, minor;
} TableKey;

typedef struct TableEntry {
    TableKey key;
    TableState state;
    bool is_asked;
    MappedTable *table; /* if it is ready */
    KeeperFileId id;    /* if it is ready */
    uint64_t used;      /* the number of its last look-up */
    uint64_t next_ns;   /* the file is not asked for before */
    uint64_t delay_ns;  /* after the last failure */
} TableEntry;

struct TableCache {
    TableCacheOptions options;
    pthread_mutex_t lock;
    TableEntry *entries[TABLE_FILES_MAX];
    TableEntry *recent;                       /* the last one that was found */
    MappedTable *tables[TABLE_FILES_MAX + 1]; /* one more while a file changes its table */
    size_t n_entries, n_tables, n_asked;
    uint64_t n_finds, version, bytes, n_evicted;
};

int table_cache_new(const TableCacheOptions *options, TableCache **ret) {
    TableCache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return -ENOMEM;
    cache->options = *options;
    (void)pthread_mutex_init(&cache->lock, NULL);
    *ret = cache;
    return 0;
}

void table_cache_limit(TableCache *cache, uint64_t limit_bytes) {
    cache->options.limit_bytes =
        limit_bytes > 0 ? MIN(limit_bytes, (uint64_t)TABLE_CACHE_MAX_BYTES) : TABLE_CACHE_MAX_BYTES;
}

TableCache *table_cache_free(TableCache *cache) {
    if (!cache)
        return NULL;
    for (size_t i = 0; i < cache->n_entries; i++)
        free(cache->entries[i]);
    for (size_t i = 0; i < cache->n_tables; i++)
        mapped_table_free(cache->tables[i]);
    (void)pthread_mutex_destroy(&cache->lock);
    free(cache);
    return NULL;
}

static TableKey table_cache_key_of(const MappedImage *image) {
    return (TableKey){.inode = image->inode,
                      .generation = image->generation,
                      .major = image->major,
                      .minor = image->minor};
}

/* The index of the entry, or where it is to be inserted. */
static size_t table_cache_search(const TableCache *c, const TableKey *key, bool *ret_found) {
    size_t low = 0, high = c->n_entries;

    *ret_found = false;
    while (low < high && !*ret_found) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(&c->entries[middle]->key, key, sizeof(*key));

        if (order < 0)
            low = middle + 1;
        else
            high = middle;
        *ret_found = order == 0;
    }
    return high;
}

static TableEntry *table_cache_entry(TableCache *c, const MappedImage *image) {
    TableKey key = table_cache_key_of(image);
    bool found;
    size_t i;

    if (c->recent && memcmp(&c->recent->key, &key, sizeof(key)) == 0)
        return c->recent;
    i = table_cache_search(c, &key, &found);
    if (found)
        c->recent = c->entries[i];
    return found ? c->entries[i] : NULL;
}

TableState table_cache_find(TableCache *c, const MappedImage *image,
                            const UnwindTable **ret_table) {
    TableEntry *entry = table_cache_entry(c, image);

    if (!entry)
        return TABLE_UNKNOWN;
    entry->used = ++c->n_finds;
    if (entry->state == TABLE_READY) {
        entry->table->used = entry->used;
        *ret_table = &entry->table->table;
    }
    return entry->state;
}

/* No file uses it. Under the lock. */
static void table_cache_drop_table(TableCache *c, MappedTable *table) {
    for (size_t i = 0; i < c->n_tables; i++)
        if (c->tables[i] == table) {
            c->tables[i] = c->tables[--c->n_tables];
            break;
        }
    c->bytes -= table->image.size;
    mapped_table_free(table);
}

/* Sets the state of an entry and takes its table away. Under the lock. */
static void table_cache_set(TableCache *c, TableEntry *entry, TableState state) {
    MappedTable *table = TAKE_PTR(entry->table);

    if (entry->state != state || table)
        c->version++;
    entry->state = state;
    if (table && --table->n_uses == 0)
        table_cache_drop_table(c, table);
}

/* Drops the least recently used entry. False: all are asked for. Under the lock. */
static bool table_cache_drop_entry(TableCache *c) {
    size_t least = SIZE_MAX;

    for (size_t i = 0; i < c->n_entries; i++)
        if (!c->entries[i]->is_asked &&
            (least == SIZE_MAX || c->entries[i]->used < c->entries[least]->used))
            least = i;
    if (least == SIZE_MAX)
        return false;
    table_cache_set(c, c->entries[least], TABLE_UNKNOWN);
    c->recent = NULL;
    free(c->entries[least]);
    c->n_entries--;
    memmove(&c->entries[least], &c->entries[least + 1],
            (c->n_entries - least) * sizeof(*c->entries));
    return true;
}

static TableEntry *table_cache_add_entry(TableCache *c, const MappedImage *image) {
    TableEntry *entry = calloc(1, sizeof(*entry));
    bool found;
    size_t at;

    if (!entry)
        return NULL;
    *entry = (TableEntry){.key = table_cache_key_of(image), .used = ++c->n_finds};
    (void)pthread_mutex_lock(&c->lock);
    if (c->n_entries == TABLE_FILES_MAX && !table_cache_drop_entry(c)) {
        (void)pthread_mutex_unlock(&c->lock);
        free(entry);
        return NULL;
    }
    at = table_cache_search(c, &entry->key, &found);
    memmove(&c->entries[at + 1], &c->entries[at], (c->n_entries - at) * sizeof(*c->entries));
    c->entries[at] = entry;
    c->n_entries++;
    (void)pthread_mutex_unlock(&c->lock);
    return entry;
}

int table_cache_want(TableCache *c, const MappedImage *image, uint64_t now_ns) {
    TableEntry *entry = table_cache_entry(c, image);
    int r;

    if (entry && (entry->is_asked || now_ns < entry->next_ns))
        return 0;
    if (c->n_asked == TABLES_ASKED_MAX)
        return -ENOBUFS;
    if (!entry)
        entry = table_cache_add_entry(c, image);
    if (!entry)
        return -ENOMEM;
    r = c->options.ask(c->options.userdata, image);
    if (r < 0)
        return r;
    c->n_asked++;
    entry->is_asked = true;
    if (entry->state == TABLE_UNKNOWN) {
        entry->state = TABLE_PENDING;
        c->version++;
    }
    return 0;
}

void table_cache_doubt(TableCache *c, const MappedImage *image) {
    TableEntry *entry = table_cache_entry(c, image);

    if (!entry)
        return;
    /* No table is better than that of other code. */
    (void)pthread_mutex_lock(&c->lock);
    if (entry->state != TABLE_UNKNOWN)
        table_cache_set(c, entry, TABLE_PENDING);
    entry->next_ns = 0;
    (void)pthread_mutex_unlock(&c->lock);
}

uint64_t table_cache_version(const TableCache *cache) {
    return cache->version;
}

static void table_cache_try_later(TableEntry *entry, uint64_t now_ns) {
    entry->delay_ns =
        entry->delay_ns > 0 ? MIN(entry->delay_ns * 2, (uint64_t)RETRY_LAST_NS) : RETRY_FIRST_NS;
    entry->next_ns = now_ns + entry->delay_ns;
}

/* Whether samples need not wait for the file: it may not be opened, or that failed for a minute. It
 * is tried again all the same. */
static bool table_cache_gives_up(const TableEntry *entry, int result) {
    return result == -EHOSTDOWN || result == -EOPNOTSUPP || result == -EACCES || result == -EPERM ||
           entry->delay_ns > PENDING_NS;
}

/* The least recently used table but `kept`; NULL: there is no other. */
static MappedTable *table_cache_least(const TableCache *c, const MappedTable *kept) {
    MappedTable *least = NULL;

    for (size_t i = 0; i < c->n_tables; i++)
        if (c->tables[i] != kept && (!least || c->tables[i]->used < least->used))
            least = c->tables[i];
    return least;
}

/* Takes the table from all files that share it. Under the lock. */
static void table_cache_evict(TableCache *c, const MappedTable *table, uint64_t now_ns) {
    unsigned n_left = table->n_uses;

    for (size_t i = 0; n_left > 0 && i < c->n_entries; i++) {
        if (c->entries[i]->table != table)
            continue;
        n_left--;
        table_cache_set(c, c->entries[i], TABLE_PENDING);
        c->entries[i]->next_ns = now_ns + EVICTED_NS;
    }
    c->n_evicted++;
}

/* Returns a table with the same bytes that is there already, or adds this one. Under the lock. */
static MappedTable *table_cache_share(TableCache *c, MappedTable *table) {
    for (size_t i = 0; i < c->n_tables; i++)
        if (mapped_table_equals(c->tables[i], table)) {
            mapped_table_free(table);
            return c->tables[i];
        }
    table->used = c->n_finds;
    c->tables[c->n_tables++] = table;
    c->bytes += table->image.size;
    return table;
}

/* The table of an opened file; NULL: there is none. */
static MappedTable *table_cache_table_of(const TableCache *c, const KeeperFileId *id) {
    for (size_t i = 0; i < c->n_entries; i++)
        if (c->entries[i]->table && memcmp(&c->entries[i]->id, id, sizeof(*id)) == 0)
            return c->entries[i]->table;
    return NULL;
}

/* Under the lock. */
static void table_cache_install(TableCache *c, TableEntry *entry, MappedTable *table,
                                const KeeperFileId *id, uint64_t now_ns) {
    table->n_uses++;
    entry->id = *id;
    entry->delay_ns = 0;
    entry->next_ns = now_ns + LOOK_AGAIN_NS;
    if (entry->table == table) {
        table->n_uses--;
        return;
    }
    table_cache_set(c, entry, TABLE_READY);
    entry->table = table;
    while (c->bytes > c->options.limit_bytes) {
        MappedTable *least = table_cache_least(c, table);

        if (!least)
            break;
        table_cache_evict(c, least, now_ns);
    }
}

static void table_cache_take_in(TableCache *c, TableEntry *entry, TableAnswer *answer,
                                uint64_t now_ns) {
    MappedTable *table = TAKE_PTR(answer->table);

    if (table && table->image.size > c->options.limit_bytes) {
        table = mapped_table_free(table);
        answer->result = -E2BIG;
        answer->is_final = true;
    } else if (table)
        table = table_cache_share(c, table);
    else if (answer->result == 0)
        table = table_cache_table_of(c, &answer->id);
    if (table)
        table_cache_install(c, entry, table, &answer->id, now_ns);
    else if (answer->result < 0 && answer->is_final) {
        table_cache_set(c, entry, TABLE_REFUSED);
        entry->delay_ns = 0;
        entry->next_ns = now_ns + LOOK_AGAIN_NS;
    } else if (answer->result < 0) {
        table_cache_try_later(entry, now_ns);
        if (entry->state != TABLE_READY && table_cache_gives_up(entry, answer->result))
            table_cache_set(c, entry, TABLE_REFUSED);
    }
}

void table_cache_answer(TableCache *c, TableAnswer *answer, uint64_t now_ns) {
    TableEntry *entry = table_cache_entry(c, &answer->image);

    /* An entry that is asked for is never dropped. */
    assert(entry && entry->is_asked && c->n_asked > 0);
    c->n_asked--;
    entry->is_asked = false;
    (void)pthread_mutex_lock(&c->lock);
    table_cache_take_in(c, entry, answer, now_ns);
    (void)pthread_mutex_unlock(&c->lock);
}

bool table_cache_has(TableCache *c, const KeeperFileId *id) {
    bool has;

    (void)pthread_mutex_lock(&c->lock);
    has = table_cache_table_of(c, id);
    (void)pthread_mutex_unlock(&c->lock);
    return has;
}

TableCacheCounts table_cache_counts(const TableCache *c) {
    TableCacheCounts counts = {.files = c->n_entries,
                               .asked = c->n_asked,
                               .tables = c->n_tables,
                               .bytes = c->bytes,
                               .evicted = c->n_evicted};

    for (size_t i = 0; i < c->n_entries; i++) {
        counts.ready += c->entries[i]->state == TABLE_READY;
        counts.refused += c->entries[i]->state == TABLE_REFUSED;
    }
    return counts;
}
