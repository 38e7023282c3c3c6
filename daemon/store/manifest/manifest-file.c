/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "store/disk/dirfd.h"
#include "store/manifest/manifest.h"

/* The file of a manifest: STEM.json next to a segment file, manifest.json in a segment folder. */

int manifest_write(int folder, const SegmentName *name, const Manifest *manifest) {
    _cleanup_(buffer_done) Buffer json = {};
    _cleanup_close_ int inner = -1;
    char text[SEGMENT_NAME_MAX];
    int r = manifest_encode(manifest, &json);

    if (r < 0)
        return r;
    if (!manifest->directory) {
        segment_name_beside(name, ".json", text);
        return dirfd_write(folder, text, buffer_bytes(&json));
    }
    segment_name_print(name, text);
    inner = openat(folder, text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return inner < 0 ? -errno : dirfd_write(inner, "manifest.json", buffer_bytes(&json));
}

int manifest_open(int folder, const SegmentName *name, bool directory) {
    _cleanup_close_ int inner = -1;
    char text[SEGMENT_NAME_MAX];
    struct stat st;

    if (!directory) {
        segment_name_beside(name, ".json", text);
        return dirfd_open_file(folder, text, &st);
    }
    segment_name_print(name, text);
    inner = openat(folder, text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return inner < 0 ? -errno : dirfd_open_file(inner, "manifest.json", &st);
}

int manifest_read(int folder, const SegmentName *name, bool directory, const char *session,
                  Manifest **ret) {
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    _cleanup_(buffer_done) Buffer json = {};
    _cleanup_close_ int inner = -1;
    char text[SEGMENT_NAME_MAX];
    int r;

    if (directory) {
        segment_name_print(name, text);
        inner = openat(folder, text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            return -errno;
        r = dirfd_read(inner, "manifest.json", MANIFEST_BYTES_MAX, &json);
    } else {
        segment_name_beside(name, ".json", text);
        r = dirfd_read(folder, text, MANIFEST_BYTES_MAX, &json);
    }
    if (r == 0)
        r = manifest_decode(buffer_bytes(&json), &manifest);
    if (r < 0)
        return r == -EFBIG ? -EBADMSG : r;
    if (manifest->sequence != name->number || manifest->directory != directory ||
        strcmp(manifest->session, session) != 0)
        return -EBADMSG;
    *ret = TAKE_PTR(manifest);
    return 0;
}
