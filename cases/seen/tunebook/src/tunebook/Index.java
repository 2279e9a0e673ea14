package tunebook;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/** Which tunes hold a run of intervals: numbers of tunes by a hash of six intervals. */
final class Index {
    private static final int RUN = 6;
    private long[] pairs = new long[1 << 16];
    private int count;
    private int tunes;

    void add(Tune tune) {
        int id = tunes++;
        int[] d = tune.intervals();
        for (int i = 0; i + RUN <= d.length; i++) {
            int h = 17;
            for (int k = 0; k < RUN; k++) h = h * 31 + Math.max(-12, Math.min(12, d[i + k])) + 12;
            if (count == pairs.length) pairs = Arrays.copyOf(pairs, count * 2);
            pairs[count++] = ((long) (h & 0x7fffffff)) << 32 | id;
        }
    }

    int tunes() {
        return tunes;
    }

    /** The whole index at once, and it is on the disk before it has its name. */
    long[] write(Path target) throws IOException {
        Arrays.sort(pairs, 0, count);
        Path fresh = target.resolveSibling(target.getFileName() + ".tmp");
        long runs = 0;
        long postings = 0;
        long mark = 1125899906842597L;
        try (FileChannel channel = FileChannel.open(fresh, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            OutputStream raw = Channels.newOutputStream(channel);
            DataOutputStream out = new DataOutputStream(new BufferedOutputStream(raw, 1 << 18));
            out.writeInt(0x54554e45);
            for (int i = 0; i < count; ) {
                int hash = (int) (pairs[i] >>> 32);
                int j = i;
                int different = 0;
                while (j < count && (int) (pairs[j] >>> 32) == hash) {
                    if (j == i || pairs[j] != pairs[j - 1]) different++;
                    j++;
                }
                out.writeInt(hash);
                out.writeInt(different);
                int before = 0;
                for (int k = i; k < j; k++) {
                    if (k > i && pairs[k] == pairs[k - 1]) continue;
                    int id = (int) pairs[k];
                    int gap = id - before;
                    before = id;
                    while (gap > 127) {
                        out.writeByte(gap & 127 | 128);
                        gap >>>= 7;
                    }
                    out.writeByte(gap);
                    mark = mark * 31 + id;
                }
                mark = mark * 31 + hash;
                runs++;
                postings += different;
                i = j;
            }
            out.flush();
            channel.force(true);
        }
        Files.move(fresh, target, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        return new long[] {runs, postings, mark};
    }
}
