#include "stream.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

[[noreturn]] static void fail(const std::string &what) { throw std::system_error(errno, std::generic_category(), what); }

LineReader::LineReader(const std::string &path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), buf_(256 * 1024) {
    if (fd_ < 0) fail(path);
    posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

LineReader::~LineReader() { close(fd_); }

bool LineReader::fill() {
    if (eof_) return false;
    std::memmove(buf_.data(), buf_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (end_ == buf_.size()) buf_.resize(buf_.size() * 2);
    ssize_t n = read(fd_, buf_.data() + end_, buf_.size() - end_);
    if (n < 0) fail("read");
    eof_ = n == 0;
    end_ += static_cast<std::size_t>(n);
    return n > 0;
}

bool LineReader::next(std::string_view &line) {
    for (std::size_t seen = 0;;) {
        const char *from = buf_.data() + begin_;
        if (const void *nl = std::memchr(from + seen, '\n', end_ - begin_ - seen)) {
            std::size_t len = static_cast<const char *>(nl) - from + 1;
            line = {from, len};
            begin_ += len;
            return true;
        }
        seen = end_ - begin_;
        if (!fill()) return false;
    }
}

FileWriter::FileWriter(const std::string &path)
    : path_(path), fd_(open((path + ".part").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)), buf_(1 << 20) {
    if (fd_ < 0) fail(path);
}

FileWriter::~FileWriter() {
    if (fd_ >= 0) close(fd_);
}

void FileWriter::flush() {
    for (std::size_t at = 0; at < used_;) {
        ssize_t n = write(fd_, buf_.data() + at, used_ - at);
        if (n < 0) fail("write");
        at += static_cast<std::size_t>(n);
    }
    used_ = 0;
}

void FileWriter::append(std::string_view s) {
    if (used_ + s.size() > buf_.size()) flush();
    if (s.size() > buf_.size()) buf_.resize(s.size());
    std::memcpy(buf_.data() + used_, s.data(), s.size());
    used_ += s.size();
}

void FileWriter::commit() {
    flush();
    if (close(fd_) != 0) fail("close");
    fd_ = -1;
    if (rename((path_ + ".part").c_str(), path_.c_str()) != 0) fail(path_);
}
