/* .../NAMESPACE_POD_UID/CONTAINER/N.log            /var/log/pods
 * .../POD_NAMESPACE_CONTAINER-ID.log               /var/log/containers
 * .../ID/ID-json.log                               /var/lib/docker/containers */
#include "log/log.h"
#include "base/view.h"

#include <stdio.h>

enum { ID_BYTES = 64, SHORT_ID_BYTES = 12, RESTART_DIGITS = 9 };

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_hex(char c)
{
    return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9');
}

/* A DNS label (RFC 1123), or several with dots between them. */
bool oos_origin_name(oos_view text, bool dots, char *to, size_t capacity)
{
    if (!text.len || text.len >= capacity) return false;
    for (size_t i = 0; i < text.len; i++) {
        char const c = text.ptr[i];
        bool const edge = i == 0 || i + 1 == text.len || text.ptr[i - 1] == '.' || text.ptr[i + 1] == '.';
        if (!is_lower(c) && (edge || c != '-') && (!dots || i == 0 || i + 1 == text.len || c != '.'))
            return false;
    }
    if (memmem(text.ptr, text.len, "..", 2)) return false;
    memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    return true;
}

static bool take_uid(oos_view text, char *to, size_t capacity)
{
    if (!text.len || text.len >= capacity) return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_hex(text.ptr[i]) && text.ptr[i] != '-') return false;
    memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    return true;
}

/* The last part of *path, which is cut off. */
static oos_view last_part(oos_view *path)
{
    while (path->len && path->ptr[path->len - 1] == '/') path->len--;
    size_t start = path->len;
    while (start && path->ptr[start - 1] != '/') start--;
    oos_view const part = oos_view_slice(*path, start, SIZE_MAX);
    path->len = start;
    return part;
}

/* Up to the next `_`, which is cut off as well. */
static oos_view first_field(oos_view *text)
{
    const char *bar = text->len ? memchr(text->ptr, '_', text->len) : NULL;
    size_t const len = bar ? (size_t)(bar - text->ptr) : text->len;
    oos_view const field = oos_view_slice(*text, 0, len);
    *text = oos_view_slice(*text, len + (bar != NULL), SIZE_MAX);
    return field;
}

static bool from_pods(oos_view name, oos_view folder, oos_view pod_folder, oos_origin *to)
{
    int64_t restart = 0;
    if (name.len < 5 || name.len > RESTART_DIGITS + 4) return false;
    for (size_t i = 0; i < name.len - 4; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9') return false;
        restart = restart * 10 + (name.ptr[i] - '0');
    }
    oos_view const space = first_field(&pod_folder), pod = first_field(&pod_folder);
    if (!oos_origin_name(space, false, to->space, sizeof to->space) ||
        !oos_origin_name(pod, true, to->pod, sizeof to->pod) ||
        !take_uid(pod_folder, to->pod_uid, sizeof to->pod_uid) ||
        !oos_origin_name(folder, false, to->container, sizeof to->container))
        return false;
    to->restart = restart;
    return true;
}

static bool from_containers(oos_view name, oos_origin *to)
{
    name.len -= 4;
    oos_view const pod = first_field(&name), space = first_field(&name);
    if (name.len < ID_BYTES + 2) return false;
    oos_view const container = oos_view_slice(name, 0, name.len - ID_BYTES - 1);
    return oos_origin_name(pod, true, to->pod, sizeof to->pod) &&
           oos_origin_name(space, false, to->space, sizeof to->space) &&
           oos_origin_name(container, false, to->container, sizeof to->container);
}

static bool from_docker(oos_view name, oos_view folder, oos_origin *to)
{
    if (folder.len != ID_BYTES || name.len != ID_BYTES + 9 || memcmp(name.ptr, folder.ptr, ID_BYTES) != 0)
        return false;
    return take_uid(oos_view_slice(folder, 0, SHORT_ID_BYTES), to->container, sizeof to->container);
}

oos_origin oos_origin_of(const char *path)
{
    oos_view rest = oos_view_of(path);
    oos_view const name = last_part(&rest), folder = last_part(&rest), above = last_part(&rest);
    oos_origin none = {.restart = -1}, found = none;
    if (name.len < 5 || memcmp(name.ptr + name.len - 4, ".log", 4) != 0) return none;
    if (from_pods(name, folder, above, &found)) return found;
    found = none;
    if (from_containers(name, &found)) return found;
    found = none;
    return from_docker(name, folder, &found) ? found : none;
}
