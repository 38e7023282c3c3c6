/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/cfi-entry.h"

#include <elf.h>

/*
 * The layout of entries, per "DWARF 5, 6.4.1" and "LSB 5, 10.6.1". A section has up to 64 MiB, so
 * an offset in it has 32 bits. An entry that ends behind the section ends the section; a malformed
 * entry is skipped.
 */

enum { DWARF_RETURN_X86_64 = 16, DWARF_RETURN_AARCH64 = 30 };

uint64_t cfi_section_address(const CfiSection *section, const uint8_t *at) {
    return section->address + (uint64_t)(at - section->bytes.data);
}

/* In .eh_frame the id of an FDE is the distance back to its CIE, in .debug_frame an offset. */
static bool cfi_entry_id(const CfiSection *section, uint64_t id, uint64_t all_ones, uint64_t id_at,
                         CfiEntry *entry) {
    uint64_t cie = section->is_debug ? id : id_at - id;

    entry->is_cie = section->is_debug ? id == all_ones : id == 0;
    if (!entry->is_cie && cie >= section->bytes.size)
        return false;
    entry->cie = entry->is_cie ? entry->at : (uint32_t)cie;
    return true;
}

bool cfi_entry_next(const CfiSection *section, uint32_t *at, CfiEntry *ret) {
    Bytes all = section->bytes;
    Cursor c = cursor_of(all.data, all.size, false);

    (void)cursor_take(&c, *at);
    while (!c.failed && cursor_left(&c) >= 4) {
        uint32_t begin = (uint32_t)(c.at - all.data);
        uint64_t size = cursor_u32(&c), id, all_ones = UINT32_MAX;
        bool is_wide = size == UINT32_MAX;
        Cursor body;

        if (size == 0 && section->ends_with_zero)
            return false;
        if (size == 0)
            continue;
        if (is_wide) {
            size = cursor_u64(&c);
            all_ones = UINT64_MAX;
        }
        body = c;
        if (!cursor_take(&c, size))
            return false;
        body.end = c.at;
        id = is_wide ? cursor_u64(&body) : cursor_u32(&body);
        *ret = (CfiEntry){.at = begin};
        if (body.failed || !cfi_entry_id(section, id, all_ones,
                                         (uint64_t)(body.at - all.data) - (is_wide ? 8 : 4), ret))
            continue;
        ret->body = (Bytes){.data = body.at, .size = cursor_left(&body)};
        *at = (uint32_t)(c.at - all.data);
        return true;
    }
    return false;
}

/* Reads the data that the letters of an augmentation announce; the cursor is at its beginning. */
static bool cfi_entry_augment(Bytes letters, Cursor *c, CfiCie *cie) {
    for (size_t i = 1; i < letters.size; i++) {
        switch (letters.data[i]) {
        case 'R':
            cie->encoding = cursor_u8(c);
            break;
        case 'L':
            (void)cursor_u8(c);
            break;
        case 'P': {
            uint8_t encoding = cursor_u8(c);

            if (encoding != CFI_ENCODING_OMIT)
                (void)cfi_form(c, encoding);
            break;
        }
        case 'S':
            cie->is_signal = true;
            break;
        case 'B': /* return addresses are signed with the other key */
        case 'G': /* frames are tagged */
            break;
        default:
            return false;
        }
    }
    return !c->failed;
}

CfiCie cfi_entry_cie(const CfiSection *section, const CfiEntry *entry) {
    Cursor c = cursor_of(entry->body.data, entry->body.size, false), data;
    CfiCie cie = {.at = entry->at};
    uint8_t version = cursor_u8(&c);
    Bytes letters = cursor_string(&c), augmentation;

    if (version != 1 && version != 3 && version != 4)
        return cie;
    /* The sizes of addresses and of segment selectors, which only .debug_frame has. */
    if (version == 4 && (cursor_u8(&c) != 8 || cursor_u8(&c) != 0))
        return cie;
    cie.code_align = cfi_uleb(&c);
    cie.data_align = cfi_sleb(&c);
    cie.return_register = version == 1 ? cursor_u8(&c) : cfi_uleb(&c);
    if (letters.size > 0) {
        if (letters.data[0] != 'z')
            return cie;
        augmentation = cursor_bytes(&c, cfi_uleb(&c));
        data = cursor_of(augmentation.data, augmentation.size, false);
        if (!cfi_entry_augment(letters, &data, &cie))
            return cie;
        cie.has_size = true;
    }
    cie.instructions = (Bytes){.data = c.at, .size = cursor_left(&c)};
    cie.is_usable =
        !c.failed && cie.return_register == (section->machine == EM_X86_64 ? DWARF_RETURN_X86_64
                                                                           : DWARF_RETURN_AARCH64);
    return cie;
}

bool cfi_entry_fde(const CfiSection *section, const CfiEntry *entry, const CfiCie *cie,
                   CfiFde *ret) {
    Cursor c = cursor_of(entry->body.data, entry->body.size, false);

    ret->begin = cfi_address(&c, cie->encoding, cfi_section_address(section, c.at));
    ret->size = cfi_form(&c, cie->encoding);
    if (cie->has_size)
        (void)cursor_take(&c, cfi_uleb(&c));
    ret->instructions = (Bytes){.data = c.at, .size = cursor_left(&c)};
    return !c.failed && ret->size > 0;
}
