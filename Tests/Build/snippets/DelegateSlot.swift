let downloader: Downloader = missing()
