package tunebook;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Indexes collections of tunes, so that a tune can be found by how it goes. */
public final class Main {
    private static void make(Path dir, int books, int tunes) throws IOException {
        Files.createDirectories(dir);
        Random r = new Random(1745);
        String[] rhythms = {"reel", "jig", "hornpipe", "polka", "waltz", "slip jig"};
        String[] keys = {"D", "G", "A", "Em", "Bm", "Ador", "C"};
        String letters = "CDEFGABcdefgab";
        int number = 0;
        for (int b = 0; b < books; b++) {
            try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(dir.resolve(String.format("book%03d.abc", b))))) {
                for (int t = 0; t < tunes; t++) {
                    out.printf("X:%d\nT:The %c%c of %d\nR:%s\nM:4/4\nK:%s\n", ++number, 'A' + r.nextInt(26), 'a' + r.nextInt(26), r.nextInt(500),
                        rhythms[r.nextInt(rhythms.length)], keys[r.nextInt(keys.length)]);
                    int at = 5;
                    for (int bar = 0; bar < 32; bar++) {
                        StringBuilder line = new StringBuilder();
                        for (int n = 0; n < 8; n++) {
                            at = Math.max(0, Math.min(letters.length() - 1, at + r.nextInt(5) - 2));
                            if (r.nextInt(12) == 0) line.append('^');
                            line.append(letters.charAt(at));
                            if (n == 3) line.append(' ');
                        }
                        out.print(line);
                        out.print(bar % 4 == 3 ? "|\n" : "|");
                    }
                    out.print('\n');
                }
            }
        }
    }

    public static void main(String[] args) throws IOException {
        if (args.length == 4 && args[0].equals("make")) {
            make(Path.of(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
            return;
        }
        if (args.length != 2) {
            System.err.println("usage: tunebook BOOKS INDEX");
            System.exit(2);
        }
        List<Path> books;
        try (Stream<Path> all = Files.list(Path.of(args[0]))) {
            books = all.sorted().collect(Collectors.toList());
        }
        Index index = new Index();
        Map<String, Integer> rhythms = new TreeMap<>();
        for (Path book : books) {
            new Book(book).each(tune -> {
                index.add(tune);
                rhythms.merge(tune.rhythm + "/" + tune.key, 1, Integer::sum);
            });
        }
        long[] sum = index.write(Path.of(args[1]));
        System.out.println(books.size() + " books " + index.tunes() + " tunes " + sum[0] + " runs " + sum[1] + " postings " + Long.toHexString(sum[2]));
        System.out.println(rhythms);
    }
}
