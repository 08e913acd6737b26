#!/bin/sh
# Prints what one needs to know before opening a pull request: branch, base, upstream,
# working tree, commits and diffstat since the merge base. Reads only; needs no network.
set -eu

GIT_PAGER=cat
GIT_OPTIONAL_LOCKS=0
export GIT_PAGER GIT_OPTIONAL_LOCKS

MAX_COMMITS=50
MAX_FILES=80

usage() {
    cat <<'EOF'
usage: gather.sh [-C DIR] [BASE]

  -C DIR  look at the repository in DIR instead of the current folder
  BASE    the branch to merge into; found from the remotes when left out
EOF
}

# fail MESSAGE [HINT]
fail() {
    printf 'gather: %s\n' "$1" >&2
    if [ $# -gt 1 ]; then
        printf 'hint: %s\n' "$2" >&2
    fi
    exit 1
}

notes=
note() {
    notes="$notes- $1
"
}

is_commit() {
    git rev-parse --verify --quiet "$1^{commit}" >/dev/null 2>&1
}

# Lists the remotes; in a fork, `upstream` is where a pull request goes, so it comes first.
remotes() {
    for remote in upstream origin; do
        git remote | grep -Fx "$remote" || :
    done
    git remote | grep -Fxv -e upstream -e origin || :
}

# Prints the ref that stands for the branch $1. The copy on the remote wins: a local base
# branch is often out of date, and would make old commits look new.
base_named() {
    for remote in $(remotes); do
        if [ "$1" != HEAD ] && git show-ref --verify --quiet "refs/remotes/$remote/$1"; then
            printf '%s/%s\n' "$remote" "$1"
            return 0
        fi
    done
    is_commit "$1" || return 1
    printf '%s\n' "$1"
}

# Prints the ref of the default branch.
base_found() {
    for remote in $(remotes); do
        if head=$(git symbolic-ref --quiet "refs/remotes/$remote/HEAD") && is_commit "$head"; then
            printf '%s\n' "${head#refs/remotes/}"
            return 0
        fi
        for name in main master trunk develop; do
            if is_commit "refs/remotes/$remote/$name"; then
                printf '%s/%s\n' "$remote" "$name"
                return 0
            fi
        done
    done
    for name in main master trunk develop; do
        if is_commit "refs/heads/$name"; then
            printf '%s\n' "$name"
            return 0
        fi
    done
    return 1
}

# Prints a base without the remote in front: `main` for `origin/main`.
without_remote() {
    for remote in $(remotes); do
        case $1 in
            "$remote"/*)
                printf '%s\n' "${1#"$remote"/}"
                return 0
                ;;
        esac
    done
    printf '%s\n' "$1"
}

count() {
    git rev-list --count "$1"
}

# --- arguments

folder=.
wanted=
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
        -*) fail "unknown option \`$1\`" "see gather.sh --help" ;;
        '') fail "the base is empty" "leave it out, or name a branch" ;;
        *)
            [ -z "$wanted" ] || fail "one base only, got \`$wanted\` and \`$1\`"
            wanted=$1
            ;;
    esac
    shift
done

# --- the repository

command -v git >/dev/null 2>&1 || fail "git is not installed"
[ -d "$folder" ] || fail "no such folder: \`$folder\`"
if ! said=$(git -C "$folder" rev-parse --show-toplevel 2>&1); then
    fail "not in the working tree of a git repository (git says: $said)" \
        "run it inside the repository, or pass -C DIR"
fi
cd "$(git -C "$folder" rev-parse --show-toplevel)"

is_commit HEAD || fail "the repository has no commits on this branch yet"

git_path() {
    git rev-parse --git-path "$1"
}
busy=
if [ -d "$(git_path rebase-merge)" ] || [ -d "$(git_path rebase-apply)" ]; then
    busy=rebase
elif [ -f "$(git_path MERGE_HEAD)" ]; then
    busy=merge
elif [ -f "$(git_path CHERRY_PICK_HEAD)" ]; then
    busy=cherry-pick
fi

if ! branch=$(git symbolic-ref --quiet --short HEAD); then
    if [ -n "$busy" ]; then
        fail "HEAD is detached and a $busy is under way" \
            "finish it (git $busy --continue) or drop it (git $busy --abort)"
    fi
    fail "HEAD is detached at $(git rev-parse --short HEAD), so there is no branch to open a pull request from" \
        "keep the commits on a branch: git switch -c NAME"
fi

# --- the base

if [ -n "$wanted" ]; then
    base=$(base_named "$wanted") ||
        fail "no branch or commit \`$wanted\`" "git fetch, or see git branch --all"
else
    base=$(base_found) ||
        fail "cannot tell which branch to merge into" "name it: gather.sh BRANCH"
fi
base_branch=$(without_remote "$base")

if ! merge_base=$(git merge-base "$base" HEAD); then
    if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
        fail "\`$base\` and \`$branch\` share no commit in this shallow clone" "git fetch --unshallow"
    fi
    fail "\`$base\` and \`$branch\` share no commit" "name another base: gather.sh BRANCH"
fi

ahead=$(count "$merge_base..HEAD")
behind=$(count "HEAD..$base")

[ "$branch" != "$base_branch" ] || note "this is the base branch itself; make a branch first: git switch -c NAME"
[ "$ahead" -gt 0 ] || note "no commits ahead of $base; there is nothing to open a pull request for"
[ "$behind" -eq 0 ] || note "$base has $behind commit(s) that are not in $branch"
[ -z "$busy" ] || note "a $busy is under way"

# --- the upstream

upstream=$(git for-each-ref --format='%(upstream:short)' "refs/heads/$branch")
if [ -z "$upstream" ]; then
    upstream_line='none (not pushed yet; git push -u origin HEAD)'
    [ -n "$(git remote)" ] || note "the repository has no remote to push to"
elif ! is_commit "$upstream"; then
    upstream_line="$upstream (gone; deleted on the remote, or never fetched)"
else
    upstream_line="$upstream ($(count "$upstream..HEAD") ahead, $(count "HEAD..$upstream") behind)"
    if [ "$upstream" = "$base" ] && [ "$branch" != "$base_branch" ]; then
        note "the upstream is the base branch; push under the branch's own name: git push -u origin HEAD"
    fi
fi

# --- the working tree and the change

status=$(git status --porcelain)
if [ -z "$status" ]; then
    changed=0
else
    changed=$(printf '%s\n' "$status" | wc -l | tr -d ' ')
    note "$changed uncommitted or untracked path(s), which a pull request would not contain"
fi

markers=$(LC_ALL=C git diff --no-color --no-ext-diff --check "$merge_base" HEAD -- | grep -c 'leftover conflict marker' || :)
[ "$markers" -eq 0 ] || note "$markers added line(s) look like conflict markers; see git diff --check $base...HEAD"

secrets=$(git -c core.quotePath=false diff --no-color --name-only --diff-filter=d "$merge_base" HEAD -- |
    grep -E '(^|/)(\.env(\.[^/]*)?|\.netrc|\.npmrc|\.pgpass|id_(rsa|dsa|ecdsa|ed25519)|[^/]*\.(pem|key|p12|pfx|jks|keystore))$' |
    grep -Ev '\.(example|sample|template|dist)$' || :)
if [ -n "$secrets" ]; then
    note "may hold secrets, look before pushing: $(printf '%s\n' "$secrets" | sed 's/.*/`&`/' | paste -s -d ' ' -)"
fi

templates=$(git ls-files |
    grep -iE '^((\.github/|docs/)?pull_request_template(\.md|\.txt|/.+)?|\.gitlab/merge_request_templates/.+)$' || :)

# --- the report

printf 'branch:      %s\n' "$branch"
printf 'base:        %s (branch %s)\n' "$base" "$base_branch"
printf 'merge base:  %s\n' "$(git log -1 --no-show-signature --no-color --format='%h %s' "$merge_base")"
printf 'head:        %s\n' "$(git log -1 --no-show-signature --no-color --format='%h %s' HEAD)"
printf 'ahead:       %s commit(s)\n' "$ahead"
printf 'behind:      %s commit(s), as of the last fetch\n' "$behind"
printf 'upstream:    %s\n' "$upstream_line"
for remote in $(remotes); do
    # A URL may carry a user name or a token, which nobody wants in a log.
    url=$(git remote get-url "$remote" 2>/dev/null | sed 's#://[^/@]*@#://#') || url=
    printf 'remote:      %s %s\n' "$remote" "$url"
done

printf '\n## Notes\n'
printf '%s' "${notes:-none
}"

printf '\n## Working tree\n'
if [ "$changed" -eq 0 ]; then
    printf 'clean\n'
else
    printf '%s\n' "$status" | head -n 30
    [ "$changed" -le 30 ] || printf '... and %s more\n' "$((changed - 30))"
fi

printf '\n## Pull request templates\n'
printf '%s\n' "${templates:-none}"

printf '\n## Commits, oldest first\n'
if [ "$ahead" -eq 0 ]; then
    printf 'none\n'
else
    [ "$ahead" -le "$MAX_COMMITS" ] || printf '(the newest %s of %s)\n' "$MAX_COMMITS" "$ahead"
    git log --reverse --max-count="$MAX_COMMITS" --no-show-signature --no-color \
        --format='- %h %s (%an)%n%w(0,4,4)%b%w(0,0,0)' "$merge_base..HEAD" | sed -e 's/[[:space:]]*$//' -e '/^$/d'
fi

printf '\n## Diffstat since the merge base\n'
if git diff --quiet --no-ext-diff "$merge_base" HEAD --; then
    printf 'no file differs\n'
else
    git diff --no-color --no-ext-diff --find-renames --stat=100 --stat-count="$MAX_FILES" "$merge_base" HEAD --
fi
