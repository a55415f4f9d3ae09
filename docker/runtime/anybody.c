/*
 * A name for whatever user a platform gives a container: OpenShift draws a user id that no file knows, and Hadoop's
 * login and Python's getpass end at that. glibc asks this module last: "passwd: files anybody" in /etc/nsswitch.conf.
 * The process's own id is called `ha`, as the image's own user is, so HDFS sees the same user.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

static const char strings[] = "ha\0x\0/home/ha\0/bin/sh";

enum nss_status _nss_anybody_getpwuid_r(uid_t uid, struct passwd *found, char *buffer, size_t length, int *error)
{
    if (uid != geteuid())
        return NSS_STATUS_NOTFOUND;
    if (length < sizeof strings) {
        *error = ERANGE;
        return NSS_STATUS_TRYAGAIN;
    }
    memcpy(buffer, strings, sizeof strings);
    *found = (struct passwd){.pw_uid = uid, .pw_gid = getegid()};
    found->pw_name = buffer;
    found->pw_passwd = buffer + strlen("ha") + 1;
    found->pw_dir = found->pw_passwd + strlen("x") + 1;
    found->pw_shell = found->pw_dir + strlen("/home/ha") + 1;
    found->pw_gecos = found->pw_name;
    return NSS_STATUS_SUCCESS;
}
