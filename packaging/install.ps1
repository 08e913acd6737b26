# Installs a released `prowess.exe` for Windows:
#
#     irm REPOSITORY/releases/latest/download/install.ps1 | iex
#
# PROWESS_INSTALL_DIR, PROWESS_VERSION and PROWESS_BASE_URL mean what they mean to install.sh. Who built the archive is not verified.

& {
    $ErrorActionPreference = 'Stop'
    $ProgressPreference = 'SilentlyContinue'
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12

    # Filled in when a release is made.
    $repository = ''
    $target = 'x86_64-pc-windows-msvc'

    if (-not [Environment]::Is64BitOperatingSystem) { throw 'there is no program for 32-bit Windows' }
    if ($env:PROWESS_REQUIRE_PROVENANCE) { throw 'this script cannot verify who built the archive; SECURITY.md says how to do it by hand' }
    $base = $env:PROWESS_BASE_URL
    if (-not $base) {
        if (-not $repository -or $repository -like 'https://example.com/*') { throw 'there is no release yet; build from a checkout with cargo' }
        $base = "$repository/releases"
    }
    if ($base -notmatch '^(https://|http://(127\.0\.0\.1|localhost):\d+(/|$))') { throw "``$base`` is not an https address" }
    $version = "$env:PROWESS_VERSION" -replace '^v', ''
    if ($version -notmatch '^[0-9A-Za-z.+-]*$') { throw "``$version`` is not a version" }
    $directory = $env:PROWESS_INSTALL_DIR
    if (-not $directory) { $directory = Join-Path $env:LOCALAPPDATA 'Programs\prowess' }

    New-Item -ItemType Directory -Force -Path $directory | Out-Null
    $temporary = Join-Path $directory ('.prowess-' + [IO.Path]::GetRandomFileName())
    New-Item -ItemType Directory -Path $temporary | Out-Null
    try {
        $sums = Join-Path $temporary 'SHA256SUMS'
        $from = if ($version) { "download/v$version" } else { 'latest/download' }
        Invoke-WebRequest -UseBasicParsing -Uri "$base/$from/SHA256SUMS" -OutFile $sums
        $line = Get-Content $sums | Where-Object { $_ -match "^([0-9a-f]{64}) [ *](prowess-([0-9A-Za-z.+-]+)-$target\.zip)$" } | Select-Object -First 1
        if (-not $line) { throw "this release has no archive for $target" }
        $null = $line -match "^([0-9a-f]{64}) [ *](prowess-([0-9A-Za-z.+-]+)-$target\.zip)$"
        $expected, $name, $found = $Matches[1], $Matches[2], $Matches[3]
        if ($version -and $version -ne $found) { throw "the release of $version has an archive of $found" }

        $archive = Join-Path $temporary 'archive.zip'
        Invoke-WebRequest -UseBasicParsing -Uri "$base/download/v$found/$name" -OutFile $archive
        $actual = (Get-FileHash -Algorithm SHA256 $archive).Hash.ToLowerInvariant()
        if ($actual -ne $expected) {
            throw "the checksum of ``$name`` is wrong: expected $expected, got $actual; nothing was installed"
        }

        # Only the program is taken out, whatever else the archive has.
        Add-Type -AssemblyName System.IO.Compression.FileSystem
        $program = Join-Path $temporary 'prowess.exe'
        $zip = [IO.Compression.ZipFile]::OpenRead($archive)
        try {
            $entry = $zip.GetEntry("prowess-$found-$target/prowess.exe")
            if (-not $entry) { throw "``$name`` does not contain the program" }
            [IO.Compression.ZipFileExtensions]::ExtractToFile($entry, $program)
        } finally { $zip.Dispose() }
        $says = & $program --version
        if ($LASTEXITCODE -ne 0) { throw 'the program does not run on this machine; nothing was installed' }
        if ("$says " -notlike "prowess $found *") { throw "``$name`` does not contain prowess $found" }
        Move-Item -Force $program (Join-Path $directory 'prowess.exe')
        Write-Host "installed $says as $(Join-Path $directory 'prowess.exe')"
        Write-Host 'note: the checksum is right; SECURITY.md says how to verify who built the archive'
        if (($env:PATH -split ';') -notcontains $directory) { Write-Host "hint: add $directory to your PATH" }
    } finally { Remove-Item -Recurse -Force $temporary }
}
