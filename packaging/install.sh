#!/bin/sh
# Installs a released `prowess` for Linux or macOS:
#
#     curl --proto '=https' -fsSL REPOSITORY/releases/latest/download/install.sh | sh
#
# PROWESS_INSTALL_DIR          where to, instead of ~/.local/bin
# PROWESS_VERSION              which release, such as 0.1.0, instead of the latest
# PROWESS_BASE_URL             where the releases are, instead of those of the repository
# PROWESS_REQUIRE_PROVENANCE   if not empty, fails unless `gh` can verify who built the archive
# PROWESS_SOURCES              the digest of sources; fails unless the release was made from them
#
# Everything is in functions, so that a script that was cut off does nothing.
set -eu

# Filled in when a release is made. In a checkout it is read from Cargo.toml.
REPOSITORY=

fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

note() {
    printf '%s\n' "$1" >&2
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Prints the address of the repository.
repository() {
    case $REPOSITORY$0 in
        https://*) printf '%s\n' "$REPOSITORY" ;;
        */packaging/install.sh) sed -n 's/^repository = "\(.*\)"$/\1/p' "${0%/*}/../Cargo.toml" ;;
    esac
}

# Prints the name of this platform, as archives have it.
platform() {
    system=$(uname -s)
    machine=$(uname -m)
    case $machine in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) unsupported "$system on $machine" ;;
    esac
    case $system in
        # A static program, which needs no C library.
        Linux) printf '%s-unknown-linux-musl\n' "$machine" ;;
        Darwin)
            # A shell that is translated for an Apple processor says `x86_64`.
            [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || :)" != 1 ] || machine=aarch64
            printf '%s-apple-darwin\n' "$machine"
            ;;
        MINGW* | MSYS* | CYGWIN* | Windows_NT)
            fail "this script does not install on Windows" "run \`install.ps1\` of the same release in PowerShell"
            ;;
        *) unsupported "$system on $machine" ;;
    esac
}

unsupported() {
    fail "there is no program for $1" \
        "build it with Rust: \`cargo install --locked --path crates/prowess-cli\` in a checkout"
}

# Refuses addresses whose answers others could change.
check_base() {
    case $1 in
        http://*@*) fail "\`$1\` is not an https address" ;;
        https://*) ;;
        http://127.0.0.1:* | http://localhost:* | 'http://[::1]:'*) ;;
        *) fail "\`$1\` is not an https address" ;;
    esac
}

# Downloads $1 to the file $2.
download() {
    check_base "$1"
    if has curl; then
        case $1 in
            https:*) protocols='=https' ;;
            *) protocols='=http,https' ;;
        esac
        curl --proto "$protocols" --tlsv1.2 --silent --show-error --fail --location \
            --retry 2 --connect-timeout 30 --output "$2" "$1" 2>"$2.log" && return
        status=$?
        # 18 and 56: the connection ended early.
        case $status in
            18 | 56) fail "the download of \`$1\` ended early" "try again" ;;
            *) fail "cannot download \`$1\`: $(tail -n 1 "$2.log")" ;;
        esac
    elif has wget; then
        wget -q -S -O "$2" "$1" 2>"$2.log" ||
            fail "cannot download \`$1\`: $(grep -E 'HTTP/|wget:' "$2.log" | tail -n 1)"
        case $1 in
            https:*)
                ! grep -qi '^ *location: *http:' "$2.log" ||
                    fail "\`$1\` leads to an address without https" "install curl"
                ;;
        esac
        if grep -q 'validation not implemented' "$2.log"; then
            fail "this \`wget\` does not check certificates" "install curl"
        fi
    else
        fail "neither curl nor wget is installed" "install one of them"
    fi
}

# Prints the SHA-256 digest of a file.
digest() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    elif has openssl; then
        openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
    else
        fail "there is no program for SHA-256 digests" "install coreutils, perl or openssl"
    fi
}

# Verifies by which workflow of which repository the archive $1 of version $2 was built.
verify_provenance() {
    reason=
    case $repository in
        https://github.com/*) name=${repository#https://github.com/} ;;
        *) reason="the repository is not on GitHub" ;;
    esac
    if [ -n "$reason" ]; then :
    elif ! has gh; then
        reason="\`gh\` is not installed"
    elif ! gh attestation verify --help 2>/dev/null | grep -q -e --source-ref; then
        reason="this \`gh\` is too old"
    elif ! gh auth token >/dev/null 2>&1; then
        reason="\`gh\` is not logged in"
    fi
    if [ -z "$reason" ]; then
        gh attestation verify "$1" --repo "$name" \
            --signer-workflow "$name/.github/workflows/release.yml" \
            --source-ref "refs/tags/v$2" >"$1.log" 2>&1 ||
            fail "the provenance of the archive cannot be verified: $(tail -n 1 "$1.log")" \
                "check \`gh auth status\` and try again; if it still fails, report it as $repository/blob/HEAD/SECURITY.md says"
        note "verified: built by the release workflow of $name"
    elif [ -n "${PROWESS_REQUIRE_PROVENANCE:-}" ]; then
        fail "the provenance was not verified: $reason"
    else
        note "note: the checksum is right, but who built the archive was not verified: $reason"
    fi
}

main() {
    umask 022
    repository=$(repository)
    case ${PROWESS_BASE_URL:-$repository} in
        '' | https://example.com/*) fail "there is no release yet" "build from a checkout with cargo" ;;
    esac
    base=${PROWESS_BASE_URL:-$repository/releases}
    base=${base%/}
    check_base "$base"
    version=${PROWESS_VERSION:-}
    version=${version#v}
    case $version in
        *[!0-9A-Za-z.+-]*) fail "\`$version\` is not a version" ;;
    esac
    target=$(platform)

    directory=${PROWESS_INSTALL_DIR:-}
    if [ -z "$directory" ]; then
        [ -n "${HOME:-}" ] || fail "HOME is not set" "set PROWESS_INSTALL_DIR"
        directory=$HOME/.local/bin
    fi
    # Beside its place, so that the program is moved there in one step.
    mkdir -p "$directory" 2>/dev/null || :
    temporary=$(mktemp -d "$directory/.prowess-XXXXXX" 2>/dev/null) ||
        fail "cannot write to \`$directory\`" "set PROWESS_INSTALL_DIR to a directory that is yours"
    trap 'rm -rf "$temporary"' EXIT
    trap 'exit 1' HUP INT TERM

    sums=$temporary/SHA256SUMS
    if [ -n "$version" ]; then
        download "$base/download/v$version/SHA256SUMS" "$sums"
    else
        download "$base/latest/download/SHA256SUMS" "$sums"
    fi
    line=$(grep -E "^[0-9a-f]{64} [ *]prowess-[0-9A-Za-z.+-]+-$target\.tar\.gz\$" "$sums" | head -n 1)
    [ -n "$line" ] || fail "this release has no archive for $target"
    expected=${line%% *}
    archive=${line#* ?}
    found=${archive#prowess-}
    found=${found%"-$target.tar.gz"}
    [ "${version:-$found}" = "$found" ] || fail "the release of $version has an archive of $found"
    if [ -n "${PROWESS_SOURCES:-}" ] && ! grep -qx "$PROWESS_SOURCES [ *]prowess-$found\.sources" "$sums"; then
        fail "prowess $found was made from other sources"
    fi

    note "downloading prowess $found for $target"
    download "$base/download/v$found/$archive" "$temporary/archive"
    actual=$(digest "$temporary/archive")
    [ "$actual" = "$expected" ] ||
        fail "the checksum of \`$archive\` is wrong: expected $expected, got $actual" \
            "the download is damaged or was changed; nothing was installed"
    verify_provenance "$temporary/archive" "$found"

    # Only the program is taken out, whatever else the archive has.
    tar -xzOf "$temporary/archive" "prowess-$found-$target/prowess" >"$temporary/prowess" 2>/dev/null ||
        fail "\`$archive\` does not contain the program"
    chmod 755 "$temporary/prowess"
    "$temporary/prowess" --version >"$temporary/version" 2>"$temporary/log" ||
        fail "the program does not run on this machine: $(tail -n 1 "$temporary/log")" \
            "nothing was installed; see $repository/blob/v$found/docs/platforms.md for what it needs"
    case "$(cat "$temporary/version") " in
        "prowess $found "*) ;;
        *) fail "\`$archive\` does not contain prowess $found" ;;
    esac
    [ ! -d "$directory/prowess" ] || fail "\`$directory/prowess\` is a directory"
    mv -f "$temporary/prowess" "$directory/prowess" ||
        fail "cannot write \`$directory/prowess\`"
    note "installed $(cat "$temporary/version") as $directory/prowess"
    case :${PATH:-}: in
        *:"$directory":*) ;;
        *) note "hint: add it to your PATH: export PATH=\"$directory:\$PATH\"" ;;
    esac
}

main "$@"
