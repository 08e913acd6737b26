# The formula for a Homebrew tap; `packaging/assets` fills in what stands between at signs.
class Prowess < Formula
  desc "Finds, checks, matches and runs skills for LLM agents"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/prowess-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/prowess-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/prowess-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/prowess-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "prowess"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/prowess.bash" => "prowess"
    zsh_completion.install "completions/prowess.zsh" => "_prowess"
    fish_completion.install "completions/prowess.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/prowess --version")
    (testpath/"skills/hello/SKILL.md").write <<~SKILL
      ---
      name: hello
      description: Greets somebody. Use when asked to say hello.
      ---
      Say hello.
    SKILL
    system bin/"prowess", "check", "skills"
  end
end
