#!/bin/sh
# Checks that the commit at hand may go to staging. Changes nothing itself; the test command
# may write what it likes, and the tree is checked again after it.
set -eu

GIT_PAGER=cat
GIT_OPTIONAL_LOCKS=0
export GIT_PAGER GIT_OPTIONAL_LOCKS

usage() {
    cat <<'EOF'
usage: preflight.sh [-C DIR]

  -C DIR  check the repository in DIR instead of the current folder

environment:
  STAGING_TEST_COMMAND    the tests, run by sh at the top of the repository (required)
  STAGING_BRANCH          branches that may go to staging, separated by spaces,
                          or `any` (default: main master)
  STAGING_ALLOW_UNPUSHED  1 allows a commit that is not on the remote
EOF
}

# fail MESSAGE [HINT]: ends the script.
fail() {
    printf 'preflight: %s\n' "$1" >&2
    if [ $# -gt 1 ]; then
        printf 'hint: %s\n' "$2" >&2
    fi
    exit 1
}

ok() {
    printf 'ok      %s\n' "$1"
}

# bad MESSAGE [HINT]: records a failed check and goes on, so that one run shows them all.
failures=0
bad() {
    failures=$((failures + 1))
    printf 'FAILED  %s\n' "$1" >&2
    if [ $# -gt 1 ]; then
        printf '        hint: %s\n' "$2" >&2
    fi
}

folder=.
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        -C)
            [ $# -gt 1 ] || fail "\`-C\` needs a folder"
            folder=$2
            shift
            ;;
        *) fail "unknown argument \`$1\`" "see preflight.sh --help" ;;
    esac
    shift
done

command -v git >/dev/null 2>&1 || fail "git is not installed"
[ -d "$folder" ] || fail "no such folder: \`$folder\`"
if ! said=$(git -C "$folder" rev-parse --show-toplevel 2>&1); then
    fail "not in the working tree of a git repository (git says: $said)" \
        "run it inside the repository, or pass -C DIR"
fi
cd "$(git -C "$folder" rev-parse --show-toplevel)"
commit=$(git rev-parse --verify --quiet HEAD) || fail "the repository has no commits on this branch yet"
short=$(git rev-parse --short HEAD)

check_branch() {
    if ! branch=$(git symbolic-ref --quiet --short HEAD); then
        branch=
        bad "HEAD is detached at $short, so no branch is checked out" "git switch BRANCH"
        return 0
    fi
    allowed=${STAGING_BRANCH:-main master}
    case " $allowed " in
        ' any ' | *" $branch "*) ok "branch \`$branch\` may go to staging" ;;
        *) bad "branch \`$branch\` may not go to staging (allowed: $allowed)" \
            "switch branches, or set STAGING_BRANCH if the user agrees" ;;
    esac
}

check_tree() {
    changes=$(git status --porcelain --untracked-files=normal)
    if [ -z "$changes" ]; then
        ok "$1"
        return 0
    fi
    bad "$2" "commit, ignore or remove:"
    printf '%s\n' "$changes" | head -n 20 | sed 's/^/        /' >&2
}

check_pushed() {
    [ -n "$branch" ] || return 0
    if [ "${STAGING_ALLOW_UNPUSHED:-}" = 1 ]; then
        ok "not compared with the remote (STAGING_ALLOW_UNPUSHED=1)"
        return 0
    fi
    upstream=$(git for-each-ref --format='%(upstream:short)' "refs/heads/$branch")
    if [ -z "$upstream" ]; then
        bad "branch \`$branch\` has no upstream, so nobody else can see this commit" \
            "git push -u origin HEAD"
        return 0
    fi
    if ! git rev-parse --verify --quiet "$upstream^{commit}" >/dev/null; then
        bad "the upstream \`$upstream\` is gone" "git fetch, then push again"
        return 0
    fi
    ahead=$(git rev-list --count "$upstream..HEAD")
    behind=$(git rev-list --count "HEAD..$upstream")
    if [ "$ahead" -eq 0 ] && [ "$behind" -eq 0 ]; then
        ok "same commit as \`$upstream\`, as of the last fetch"
        return 0
    fi
    [ "$ahead" -eq 0 ] || bad "$ahead commit(s) are not on \`$upstream\`" "push them"
    [ "$behind" -eq 0 ] || bad "$behind commit(s) behind \`$upstream\`" "git pull --ff-only"
}

check_tests() {
    if [ -z "${STAGING_TEST_COMMAND:-}" ]; then
        bad "no tests given" "set STAGING_TEST_COMMAND, for example to 'make test'"
        return 0
    fi
    if [ "$failures" -gt 0 ]; then
        printf 'skipped tests, since an earlier check failed\n'
        return 0
    fi
    printf 'running %s\n' "$STAGING_TEST_COMMAND"
    # The tests get no standard input: a prompt would wait for ever.
    status=0
    sh -c "$STAGING_TEST_COMMAND" </dev/null || status=$?
    if [ "$status" -ne 0 ]; then
        bad "tests failed with exit status $status: $STAGING_TEST_COMMAND"
        return 0
    fi
    ok "tests passed"
    check_tree "tests left the tree clean" "the tests changed the working tree"
    [ "$(git rev-parse HEAD)" = "$commit" ] || bad "HEAD moved while the tests ran"
}

check_branch
check_tree "working tree is clean" "the working tree is not clean"
check_pushed
check_tests

if [ "$failures" -gt 0 ]; then
    fail "not ready for staging, $failures check(s) failed"
fi
printf 'ready   %s %s\n' "$branch" "$commit"
